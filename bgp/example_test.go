package bgp_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
)

// A node with a block of addresses, which it announces to a route reflector. Blocks of other nodes become routes of VRF "cluster".
func Example() {
	us, reflector := netip.MustParseAddr("192.0.2.11"), netip.MustParseAddr("192.0.2.1")
	n, err := node.New(&node.Options{Owners: []string{bgp.DefaultOwner}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer n.Close()
	fabric, err := n.Segment(200, nil) // a program adds the port to the network of the nodes
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := fabric.Gateway("cluster", node.Gateway{MAC: frame.MAC{2, 0, 0, 0, 0, 11}, Addresses: []netip.Prefix{netip.PrefixFrom(us, 24)}}); err != nil {
		fmt.Println(err)
		return
	}
	sp, err := bgp.New(n, &bgp.Config{
		AS: 64512, RouterID: us, VRF: "cluster", Segment: 200, Addresses: []netip.Addr{us},
		Announce: []netip.Prefix{netip.MustParsePrefix("10.65.1.0/26")},
		Pools:    []bgp.Pool{{Prefix: netip.MustParsePrefix("10.65.0.0/16")}},
		Peers:    []bgp.Peer{{Addr: reflector, AS: 64512}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go n.Run(ctx)
	go sp.Run(ctx)

	for len(sp.Status().Announced) == 0 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("announced", sp.Status().Announced, "to", sp.Status().Peers[0].Addr)
	// Output: announced [10.65.1.0/26] to 192.0.2.1
}
