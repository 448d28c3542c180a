package routed_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/routed"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A node of a flannel network whose leases and underlay are in memory. A real one has etcd.New, and no Options.Listen.
func Example() {
	leases := flannel.NewMemory(`{"Network": "10.230.0.0/16", "SubnetMin": "10.230.7.0", "SubnetMax": "10.230.7.0", "Backend": {"Type": "vxlan"}}`)
	defer leases.Close()
	wire := memory.NewNetwork(nil)
	defer wire.Close()
	n, err := node.New(&node.Options{Owners: []string{"flannel"}, Listen: func(t *node.Tunnel) (vtep.Underlay, error) {
		return wire.Listen(t.AddrPort(), nil)
	}})
	fatal(err)
	defer n.Close()
	pods, err := n.Segment(routed.DefaultPods, nil) // pods.Add(port, nil) adds a pod
	fatal(err)
	shape, err := routed.New(&routed.Config{Node: n})
	fatal(err)
	plane, err := flannel.NewPlane(&flannel.PlaneConfig{
		Store:    &flannel.Registry{KV: leases.KV()},
		Shape:    shape,
		PublicIP: netip.MustParseAddr("192.0.2.1"),
	})
	fatal(err)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.Run(ctx) })
	running.Go(func() { fatal(plane.Run(ctx)) })
	<-plane.Ready()
	fmt.Println("segment", pods.VNI(), "has the pods of", plane.Status().Own.Subnet)
	stop()
	running.Wait()
	// Output: segment 16777214 has the pods of 10.230.7.0/24
}

func fatal(err error) {
	if err != nil {
		panic(err)
	}
}
