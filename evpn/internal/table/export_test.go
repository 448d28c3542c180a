package table

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// Routes of what is here.
func TestExport(t *testing.T) {
	l := newLab(t, nil)
	l.wantTold(route.Multicast,
		"192.0.2.1:1 00:00:00:00:00:00 192.0.2.1 0 [100] 192.0.2.1 [65000:100] 0 false false 00:00:00:00:00:00 false",
		"192.0.2.1:2 00:00:00:00:00:00 192.0.2.1 0 [200] 192.0.2.1 [65000:200] 0 false false 00:00:00:00:00:00 false")
	gateway := "192.0.2.1:2 02:00:00:00:00:fe 10.2.0.1 0 [200] 192.0.2.1 [65000:200] 0 true false 00:00:00:00:00:00 true"
	l.wantTold(route.MACIP, gateway)
	port := frame.NewDest(3, 0)
	l.Here(0, 100, mac(1), port, false)
	l.Speaks(100, mac(1), netip.MustParseAddr("10.0.0.1"), false)
	l.Speaks(100, mac(1), netip.MustParseAddr("2001:db8::1"), true)
	l.Speaks(200, mac(2), netip.MustParseAddr("10.2.0.2"), false) // an address alone is nothing
	l.Configured(0, 200, mac(3), netip.MustParseAddr("10.2.0.3"), "p3", false, 1)
	l.Static("red", netip.MustParsePrefix("10.2.0.0/24"), 1)
	l.Static("red", netip.MustParsePrefix("10.2.0.0/24"), 1)
	l.Static("red", netip.MustParsePrefix("fe80::/64"), 1)
	l.Static("blue", netip.MustParsePrefix("10.5.0.0/24"), 1)
	one := []string{
		"192.0.2.1:1 02:00:00:00:00:01 none 0 [100] 192.0.2.1 [65000:100] 0 false false 00:00:00:00:00:00 false",
		"192.0.2.1:1 02:00:00:00:00:01 10.0.0.1 0 [100] 192.0.2.1 [65000:100] 0 false false 00:00:00:00:00:00 false",
		"192.0.2.1:1 02:00:00:00:00:01 2001:db8::1 0 [100] 192.0.2.1 [65000:100] 0 false true 00:00:00:00:00:00 false",
	}
	three := []string{
		"192.0.2.1:2 02:00:00:00:00:03 none 0 [200] 192.0.2.1 [65000:200] 0 true false 00:00:00:00:00:00 false",
		"192.0.2.1:2 02:00:00:00:00:03 10.2.0.3 0 [200 500] 192.0.2.1 [65000:200 65000:500] 0 true false 02:00:00:00:00:fd false",
	}
	l.wantTold(route.MACIP, slices.Concat([]string{gateway}, one, three)...)
	l.wantTold(route.Prefix, "192.0.2.1:3 00:00:00:00:00:00 10.2.0.0 24 [500] 192.0.2.1 [65000:500] 0 false false 02:00:00:00:00:fd false")
	n := l.calls
	l.Here(0, 100, mac(1), frame.NewDest(4, 0), false) // to another port
	l.Mark(100)
	l.Here(0, 100, mac(1), port, false)
	l.Speaks(100, mac(1), netip.MustParseAddr("10.0.0.1"), false)
	l.Sweep(0, 100)
	l.wantTold(route.MACIP, slices.Concat([]string{gateway}, one[:2], three)...)
	if l.calls != n+1 {
		t.Errorf("%d calls for one address that is gone", l.calls-n)
	}
	l.PortGone(0, 100, frame.NewDest(4, 0)) // not at that port: it said port 3 last, which counts
	l.PortGone(0, 100, port)
	l.PortGone(0, 200, port)
	l.wantTold(route.MACIP, slices.Concat([]string{gateway}, three)...)
	l.Static("red", netip.MustParsePrefix("10.2.0.0/24"), -1)
	l.Configured(0, 200, mac(3), netip.MustParseAddr("10.2.0.3"), "p3", false, -1)
	l.wantTold(route.MACIP, gateway)
	if len(l.show(route.Prefix)) != 1 {
		t.Error(l.show(route.Prefix))
	}
	l.Static("red", netip.MustParsePrefix("10.2.0.0/24"), -1)
	l.DeleteSegment(100)
	l.SetSegment(0, Segment{VNI: 200, VTEP: at("192.0.2.100"), VRF: "red"}) // another address, no gateway
	l.wantTold(route.Prefix)
	l.wantTold(route.MACIP)
	l.wantTold(route.Multicast, "192.0.2.1:2 00:00:00:00:00:00 192.0.2.100 0 [200] 192.0.2.100 [65000:200] 0 false false 00:00:00:00:00:00 false")
	l.SetSegment(0, Segment{VNI: 200, VTEP: at("192.0.2.100"), Silent: true})
	l.wantTold(route.Multicast)
	// A VRF that comes later has what was said before.
	l.SetVRF(VRF{Name: "blue", L3VNI: 501, RouterMAC: mac(0xfc), VTEP: at(ours)})
	l.wantTold(route.Prefix, "192.0.2.1:4 00:00:00:00:00:00 10.5.0.0 24 [501] 192.0.2.1 [65000:501] 0 false false 02:00:00:00:00:fc false")
	l.DeleteVRF("blue")
	l.wantTold(route.Prefix)
}

// A route of a host has the targets of its segment and of its VRF, and up to four communities more.
func TestCommunitiesOfHost(t *testing.T) {
	const each = 60
	l := newLab(t, nil)
	list := func(as uint32) (ts []route.Target) {
		for i := range each {
			ts = append(ts, route.Target(target(as, uint32(i))))
		}
		return ts
	}
	l.SetSegment(0, Segment{VNI: 200, VTEP: at(ours), VRF: "red", Export: list(1), Gateways: []Gateway{{MACs: []frame.MAC{mac(0xfe)}, Addresses: []netip.Prefix{netip.MustParsePrefix("2001:db8:2::1/64")}}}})
	l.SetVRF(VRF{Name: "red", L3VNI: 500, RouterMAC: mac(0xfd), VTEP: at(ours), Export: list(2)})
	l.Here(0, 200, mac(9), frame.NewDest(3, 0), true)
	l.Speaks(200, mac(9), netip.MustParseAddr("2001:db8:2::9"), true)
	l.flush()
	most := 0
	for _, r := range l.told {
		most = max(most, r.Communities.Len())
	}
	if most != 2*each+4 {
		t.Errorf("%d communities, want %d", most, 2*each+4)
	}
}
