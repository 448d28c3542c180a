package table

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// The router of an overlay index is in the smallest of our networks that has its address, always the same one.
func TestNetworkOfRouter(t *testing.T) {
	for range 20 {
		l := newLab(t, nil)
		for i, p := range []string{"10.0.0.1/8", "10.2.0.200/25", "10.2.0.1/20"} {
			l.SetSegment(0, Segment{VNI: frame.VNI(300 + i), VTEP: at(ours), VRF: "red", Gateways: []Gateway{{Addresses: []netip.Prefix{netip.MustParsePrefix(p)}}}})
		}
		l.Learned(0, peer, with(prefixRoute("10.9.0.0/16"), func(r *route.Route) { r.Gateway = at("10.2.0.7") }))
		l.want("prefix 10.9.0.0/16 vrf red via vni 200 ip 10.2.0.7 distance 20")
	}
}
