package kube_test

import (
	"fmt"

	"github.com/vxswitch/vxswitch/calico"
	"github.com/vxswitch/vxswitch/calico/kube"
	"github.com/vxswitch/vxswitch/node"
)

// A node of a cluster whose datastore is the API of Kubernetes. All else is as in the example of package calico.
func Example() {
	store, err := kube.New(&kube.Config{URL: "http://127.0.0.1:1"}) // where none is, in this example
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := node.New(&node.Options{Owners: []string{calico.DefaultOwner}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer n.Close()
	p, err := calico.New(n, &calico.Config{
		Node: "host-7", VRF: "cluster", NoBGP: true, VXLAN: calico.Tunnel{Segment: 4096},
		Workloads: calico.Workloads{Prefixes: []string{"cali"}}, Datastore: store,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Status().Stale.IsZero())
	// Output: false
}
