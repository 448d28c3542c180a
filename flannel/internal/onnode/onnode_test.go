package onnode

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/node"
)

// The router of each family goes with the address of it, whichever families the network has.
func TestTunnelGateway(t *testing.T) {
	four, six, router4, router6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.254"), netip.MustParseAddr("2001:db8::fe")
	for _, c := range []struct{ ip4, ip6, local, local6, gateway, gateway6 netip.Addr }{
		{ip4: four, local: four, gateway: router4},
		{ip6: six, local: six, gateway: router6},
		{ip4: four, ip6: six, local: four, local6: six, gateway: router4, gateway6: router6},
	} {
		own := new(flannel.Own)
		own.IPv4.PublicIP, own.IPv6.PublicIP = c.ip4, c.ip6
		var n node.Tunnel
		n.Gateway, n.Gateway6 = router4, router6
		if n = Tunnel(n, own, false); n.Local != c.local || n.Local6 != c.local6 || n.Gateway != c.gateway || n.Gateway6 != c.gateway6 {
			t.Errorf("%v %v: %v, %v, through %v, %v", c.ip4, c.ip6, n.Local, n.Local6, n.Gateway, n.Gateway6)
		}
	}
}
