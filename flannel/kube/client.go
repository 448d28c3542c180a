package kube

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A nodes is what a Store does with nodes: CoreV1().Nodes() of a clientset has it.
type nodes interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Node, error)
	List(ctx context.Context, o metav1.ListOptions) (*corev1.NodeList, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, t types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Node, error)
}

// A getter reads one object of a namespace.
type getter[T any] func(ctx context.Context, namespace, name string) (T, error)

// A client is the API server.
type client struct {
	nodes      nodes
	pods       getter[*corev1.Pod]
	configMaps getter[*corev1.ConfigMap]
	host       string
	streams    bool // a snapshot can be one
	close      func()
}

// core has the kinds that are needed: a clientset would link those of all groups.
var core = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}()

// A server is an API server.
type server struct {
	rest.Interface
	params runtime.ParameterCodec
	http   *http.Client
	host   string
}

// dial finds an API server. It connects when it is used.
func dial(c *Config) (*server, error) {
	rc := c.REST
	if rc == nil {
		var err error
		if c.URL == "" && c.Kubeconfig == "" {
			if rc, err = rest.InClusterConfig(); err != nil {
				return nil, fmt.Errorf("kube: no API server: outside a pod the URL or a kubeconfig file is needed: %w", err)
			}
		} else if rc, err = clientcmd.BuildConfigFromFlags(c.URL, c.Kubeconfig); err != nil {
			return nil, fmt.Errorf("kube: no API server: kubeconfig file %q: %w", c.Kubeconfig, err)
		}
	}
	rc = rest.CopyConfig(rc)
	rc.APIPath, rc.GroupVersion = "/api", &corev1.SchemeGroupVersion
	rc.NegotiatedSerializer = serializer.NewCodecFactory(core).WithoutConversion()
	rc.ContentType, rc.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	rc.WarningHandler = rest.NoWarnings{}
	rc.UserAgent = cmp.Or(rc.UserAgent, "vxswitch")
	hc, err := rest.HTTPClientFor(rc)
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	r, err := rest.RESTClientForConfigAndClient(rc, hc)
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	return &server{r, runtime.NewParameterCodec(core), hc, rc.Host}, nil
}

func (s *server) nodes() *gentype.ClientWithList[*corev1.Node, *corev1.NodeList] {
	return gentype.NewClientWithList("nodes", s.Interface, s.params, "", func() *corev1.Node { return new(corev1.Node) }, func() *corev1.NodeList { return new(corev1.NodeList) })
}

func (s *server) pods(namespace string) *gentype.Client[*corev1.Pod] {
	return gentype.NewClient("pods", s.Interface, s.params, namespace, func() *corev1.Pod { return new(corev1.Pod) })
}

func (s *server) configMaps(namespace string) *gentype.Client[*corev1.ConfigMap] {
	return gentype.NewClient("configmaps", s.Interface, s.params, namespace, func() *corev1.ConfigMap { return new(corev1.ConfigMap) })
}

// client returns what a Store uses.
func (s *server) client() *client {
	return &client{
		nodes: s.nodes(),
		pods: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			return s.pods(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		configMaps: func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
			return s.configMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		host:    s.host,
		streams: true,
		close:   func() { net.CloseIdleConnectionsFor(s.http.Transport) },
	}
}
