package l3_test

import (
	"fmt"
	"log"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// Blocks of two other nodes, one of them on our own link. Between nodes of one subnet packets
// need no tunnel.
func ExampleVRF_NewBlocks() {
	net := memory.NewNetwork(nil)
	defer net.Close()
	u, err := net.Listen(netip.MustParseAddrPort("192.0.2.1:4790"), nil)
	if err != nil {
		log.Fatal(err)
	}
	tunnel, err := vtep.New(nil, u)
	if err != nil {
		log.Fatal(err)
	}
	defer tunnel.Close()
	gateway, err := l3.NewGateway(nil)
	if err != nil {
		log.Fatal(err)
	}
	vrf := gateway.VRF("pods")
	send := func(frame.Dest, *frame.Frame) bool { return true } // VSI.Send
	overlay, err := vrf.NewInterface(&l3.InterfaceConfig{VNI: 1, Port: frame.NewDest(1, 0), Tunnel: tunnel, Send: send})
	if err != nil {
		log.Fatal(err)
	}
	link, err := vrf.NewInterface(&l3.InterfaceConfig{VNI: 2, Port: frame.NewDest(2, 0), Send: send})
	if err != nil {
		log.Fatal(err)
	}
	pool, err := vrf.NewBlocks(l3.Always, netip.MustParsePrefix("192.0.2.0/24"))
	if err != nil {
		log.Fatal(err)
	}
	for block, addr := range map[string]string{"10.244.1.0/26": "192.0.2.2", "10.244.2.0/26": "198.51.100.3"} {
		node := netip.MustParseAddr(addr)
		peer, err := tunnel.AddPeer(netip.AddrPortFrom(node, 0))
		if err != nil {
			log.Fatal(err)
		}
		err = pool.Set(netip.MustParsePrefix(block), l3.Node{
			Addr:   node,
			Tunnel: l3.NextHop{Interface: overlay, Peer: peer},
			Direct: l3.NextHop{Interface: link},
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	for _, mode := range []l3.Encapsulation{l3.Always, l3.CrossSubnet} {
		if err := pool.SetMode(mode); err != nil {
			log.Fatal(err)
		}
		fmt.Println(pool.Mode())
		for _, r := range vrf.Routes() {
			fmt.Println(" ", r.Prefix, r.Via)
		}
	}
	// Output:
	// always
	//   10.244.1.0/26 [vni 1 peer 192.0.2.2:4790]
	//   10.244.2.0/26 [vni 1 peer 198.51.100.3:4790]
	// cross-subnet
	//   10.244.1.0/26 [vni 2]
	//   10.244.2.0/26 [vni 1 peer 198.51.100.3:4790]
}
