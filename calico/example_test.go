package calico_test

import (
	"context"
	"fmt"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

// A node with the policies of a cluster. Whoever makes containers gives it ports: what is called cali... is closed from its first frame on,
// and does what the policies of its WorkloadEndpoint say as soon as that is known.
func Example() {
	n, err := node.New(&node.Options{Owners: []string{calico.DefaultOwner, bgp.DefaultOwner}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer n.Close()
	p, err := calico.New(n, &calico.Config{
		Node: "host-7", VRF: "cluster", NoBGP: true, VXLAN: calico.Tunnel{Segment: 4096},
		Etcd:      calico.Etcd{Settings: etcd.Settings{Endpoints: []string{"http://127.0.0.1:1"}}}, // where none is, in this example
		Workloads: calico.Workloads{Prefixes: []string{"cali"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go n.Run(ctx)
	go p.Run(ctx)
	pods, err := n.Segment(10, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := pods.Add(port.NewPipe(&port.PipeConfig{Name: "cali3f2a"}), nil); err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range p.Status().Workloads {
		fmt.Println(w.Port, w.Policies, w.Closed)
	}
	// Output: cali3f2a [] the datastore has not been read
}
