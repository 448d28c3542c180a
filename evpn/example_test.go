package evpn_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/evpn"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A leaf with a segment, and a route reflector. The tunnel is in memory, so that this runs everywhere.
func Example() {
	us, reflector := netip.MustParseAddr("192.0.2.11"), netip.MustParseAddr("192.0.2.1")
	wire := memory.NewNetwork(nil)
	defer wire.Close()
	n, err := node.New(&node.Options{
		Owners: []string{evpn.DefaultOwner},
		Listen: func(t *node.Tunnel) (vtep.Underlay, error) { return wire.Listen(t.AddrPort(), nil) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer n.Close()
	if _, err := n.Tunnel("vx", node.Tunnel{Local: us, Config: vtep.Config{Peers: vtep.ListedPerVNI}}); err != nil {
		fmt.Println(err)
		return
	}
	_, err = n.Segment(100, &node.Segment{
		Tunnels:    []node.SegmentTunnel{{Tunnel: "vx", AttachConfig: vswitch.AttachConfig{NoLearn: true}}}, // BGP says where MACs are
		Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Suppress}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	sp, err := evpn.New(n, &evpn.Config{AS: 65000, RouterID: us, Peers: []evpn.Peer{{Addr: reflector, AS: 65000}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go n.Run(ctx)
	go sp.Run(ctx)

	for len(sp.Status().Segments) == 0 || sp.Status().Advertised == 0 {
		time.Sleep(time.Millisecond)
	}
	for r := range sp.Routes() {
		fmt.Printf("type %d, RD %s, VNI %d, VTEP %v, targets %v\n", r.Type, r.RD, r.VNI, r.VTEP, r.Targets)
	}
	// Output: type 3, RD 192.0.2.11:1, VNI 100, VTEP 192.0.2.11, targets [65000:100]
}
