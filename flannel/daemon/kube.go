package daemon

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"github.com/vxswitch/vxswitch/flannel"
)

// A Cluster is what the flags say of Kubernetes.
type Cluster struct {
	URL, Kubeconfig string // of the API server, both "" in a pod
	Node            string // name of this node; "" = that of Pod
	Pod             string // NAMESPACE/NAME
	Prefix          string // of annotations; "" = flannel's
	NetworkFile     string // "" = flannel's
}

// A ClusterStore is a store in the nodes of Kubernetes.
type ClusterStore interface {
	flannel.Store

	// PublicIPs returns the addresses that an operator has given the node, invalid for none.
	PublicIPs(ctx context.Context) (ipv4, ipv6 netip.Addr, err error)

	// Available tells the node that pods can be made.
	Available(ctx context.Context) error

	Close() error
}

// name finds out in the environment which node this is.
func (c *Cluster) name(env []string) error {
	var namespace, pod string
	for _, e := range env {
		switch name, value, _ := strings.Cut(e, "="); name {
		case "NODE_NAME":
			c.Node = value
		case "POD_NAMESPACE":
			namespace = value
		case "POD_NAME":
			pod = value
		}
	}
	if c.Node == "" && (namespace == "" || pod == "") {
		return errors.New("-kube-subnet-mgr: NODE_NAME, or POD_NAMESPACE and POD_NAME, must be in the environment")
	}
	if c.Node == "" {
		c.Pod = namespace + "/" + pod
	}
	return nil
}
