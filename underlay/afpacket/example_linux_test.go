package afpacket_test

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay/afpacket"
	"github.com/vxswitch/vxswitch/vtep"
)

// A VTEP past the network stack: it has an address that nobody else has, on the network of
// eth0, and reaches what is elsewhere through a router.
func ExampleListen() {
	u, err := afpacket.Listen(netip.MustParseAddrPort("192.0.2.7:4789"), &afpacket.Config{
		Device:  "eth0",
		Prefix:  netip.MustParsePrefix("192.0.2.0/24"),
		Gateway: netip.MustParseAddr("192.0.2.1"),
		MAC:     frame.MAC{0x02, 0, 0, 0, 0, 0x07},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := vtep.New(nil, u)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()
}
