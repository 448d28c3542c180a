// Package apiserver finds an API server of Kubernetes, and follows objects there, for whatever is kept in a cluster: leases of
// flannel, or resources of Calico.
package apiserver

import (
	"cmp"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config says where an API server is.
type Config struct {
	URL        string       // of the API server; "" = that of Kubeconfig, or of the cluster in which the program is a pod
	Kubeconfig string       // a file; "" = none
	REST       *rest.Config // replaces URL and Kubeconfig if it is not nil
}

// A Server is the way to an API server.
type Server struct {
	Host string // for messages

	config *rest.Config
	client *http.Client
}

// Dial finds an API server. It connects when it is used.
func Dial(c *Config) (*Server, error) {
	rc := c.REST
	if rc == nil {
		var err error
		if c.URL == "" && c.Kubeconfig == "" {
			if rc, err = rest.InClusterConfig(); err != nil {
				return nil, fmt.Errorf("no API server: outside a pod the URL or a kubeconfig file is needed: %w", err)
			}
		} else if rc, err = clientcmd.BuildConfigFromFlags(c.URL, c.Kubeconfig); err != nil {
			return nil, fmt.Errorf("no API server: kubeconfig file %q: %w", c.Kubeconfig, err)
		}
	}
	rc = rest.CopyConfig(rc)
	rc.WarningHandler = rest.NoWarnings{}
	rc.UserAgent = cmp.Or(rc.UserAgent, "vxswitch")
	if rc.QPS == 0 {
		rc.QPS = -1 // who follows many kinds asks for all at once, and then for none
	}
	hc, err := rest.HTTPClientFor(rc)
	if err != nil {
		return nil, err
	}
	return &Server{rc.Host, rc, hc}, nil
}

// Client returns a client for the objects of a group, of kinds that a scheme has. They are in JSON, or also in protobuf.
func (s *Server) Client(group schema.GroupVersion, kinds *runtime.Scheme, protobuf bool) (rest.Interface, error) {
	rc := rest.CopyConfig(s.config)
	rc.APIPath, rc.GroupVersion = "/apis", &group
	if group.Group == "" {
		rc.APIPath = "/api"
	}
	rc.NegotiatedSerializer = serializer.NewCodecFactory(kinds).WithoutConversion()
	rc.ContentType, rc.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if protobuf {
		rc.ContentType, rc.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	}
	return rest.RESTClientForConfigAndClient(rc, s.client)
}

// Close closes the connections that nobody uses.
func (s *Server) Close() { net.CloseIdleConnectionsFor(s.client.Transport) }
