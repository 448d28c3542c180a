package hostnet_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/hostnet"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/vtep"
)

// The host 192.0.2.1 and the hosts and pods of a second node, whose block is 10.65.2.0/26. It needs root.
func Example() {
	const tunnel, leg = 100, 300
	n, err := node.New(nil)
	fatal(err)
	defer n.Close()
	own, far := netip.MustParsePrefix("10.65.1.60/32"), netip.MustParsePrefix("10.65.2.0/26")
	gateway := func(addr string) *node.SegmentGateway {
		return &node.SegmentGateway{VRF: "cluster", Gateway: node.Gateway{Addresses: []netip.Prefix{netip.MustParsePrefix(addr)}}}
	}
	fatal(n.Apply(&node.Config{
		Tunnels: []node.Tunnel{{Config: vtep.Config{Name: "ipip", Type: encap.TypeIPIP}, Local: netip.MustParseAddr("192.0.2.1")}},
		Ports:   []node.Port{{Name: "vxhost0", Type: node.PortTUN}},
		Segments: []node.Segment{
			{VNI: tunnel, Tunnel: "ipip", Gateway: gateway("10.66.0.1/32")},
			{VNI: leg, Members: []node.Member{{Port: "vxhost0"}}, Gateway: gateway("10.66.0.2/32")},
		},
		VRFs: []node.VRF{{Name: "cluster", Routes: []node.Route{
			{Prefix: own, Via: []node.Hop{{Segment: leg}}},
			{Prefix: far, Via: []node.Hop{{Segment: tunnel, Remote: netip.MustParseAddr("192.0.2.2")}}},
		}}},
	}))

	h, err := hostnet.Open(&hostnet.Config{
		Device:    "vxhost0",
		Addresses: []netip.Prefix{own},
		MTU:       1480, // what fits the tunnel
		Repaired:  func(r hostnet.Repair) { log.Print("put back: ", r) },
	})
	fatal(err)
	defer h.Close() // its routes and its address go
	stop := hostnet.Follow(n.Plane(), h, &hostnet.FollowConfig{VRF: "cluster", Segment: leg, Failed: func(err error) { log.Print(err) }})
	defer stop()
	for _, wrong := range h.Check() {
		log.Print(wrong)
	}
	fatal(n.Run(context.Background())) // ip route: 10.65.2.0/26 dev vxhost0 proto 118 scope link src 10.65.1.60
}

// Errors name the setting.
func ExampleConfig_Check() {
	fmt.Println((&hostnet.Config{Device: "vxhost0", Protocol: 2}).Check())
	// Output:
	// hostnet: Config.Protocol: 2: must be 5 to 255, or 0 for 118
}

func fatal(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
