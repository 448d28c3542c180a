package table

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// Rows of each type.
func TestImport(t *testing.T) {
	l := newLab(t, nil)
	l.Learned(0, peer, multicast())
	l.Learned(0, peer, macIP(mac(1), ""))
	l.Learned(0, peer, macIP(mac(1), "10.0.0.1"))
	l.Learned(0, peer, with(macIP(mac(1), "2001:db8::1"), func(r *route.Route) { communities2(r, target(65000, 100), route.NDFlags(true, true)) }))
	l.Learned(0, peer, macVRF(mac(2), "10.2.0.2"))
	l.Learned(0, peer, macVRF(mac(2), "fe80::2")) // never routed
	l.Learned(0, peer, with(macIP(mac(3), ""), func(r *route.Route) { r.Labels[0] = 7001 }))
	l.Learned(0, peer, with(macIP(mac(4), ""), func(r *route.Route) { communities2(r, target(9, 100), route.Mobility(0, true)) }))
	l.Learned(0, peer, prefixRoute("10.9.0.0/16"))
	l.Learned(0, reflector, prefixRoute("10.9.0.0/16")) // the same of another
	l.Learned(0, peer, with(prefixRoute("10.8.0.0/16"), func(r *route.Route) { r.Gateway = at("10.2.0.7") }))
	want := []string{
		control.Flood{VNI: 100, VTEP: netip.MustParseAddrPort("192.0.2.2:0")}.String(),
		row(1, 100, "10.0.0.1").String(), with(row(1, 100, "2001:db8::1"), func(r *control.MAC) { r.Router = true }).String(),
		row(2, 200, "10.2.0.2").String(), row(2, 200, "fe80::2").String(),
		with(row(3, 100, ""), func(r *control.MAC) { r.FarVNI = 7001 }).String(),
		with(row(4, 100, ""), func(r *control.MAC) { r.Sticky = true }).String(),
		via("10.2.0.2/32"), via("10.9.0.0/16"),
		control.Prefix{VRF: "red", Prefix: netip.MustParsePrefix("10.8.0.0/16"), Via: control.Via{VNI: 200, IP: netip.MustParseAddr("10.2.0.7")}, Distance: 20}.String(),
	}
	l.want(want...)
	l.Down(0, reflector) // nothing changes
	l.want(want...)
	// Graceful restart: what is not said again is gone at the end.
	l.Stale(peer)
	l.want(want...)
	l.Learned(0, peer, multicast())
	l.Ended(0, peer)
	l.want(want[0])
	if len(l.Left()) != 0 {
		t.Error(l.Left())
	}
	// Pruning (RFC 9574).
	l.Learned(0, peer, with(multicast(), func(r *route.Route) { r.TunnelFlags = noBroadcast | noUnknown }))
	l.want(control.Flood{VNI: 100, VTEP: netip.MustParseAddrPort("192.0.2.2:0"), NoBroadcast: true, NoUnknown: true}.String())
	// A segment that goes takes its rows along, and has them again when it comes.
	l.DeleteSegment(100)
	l.want()
	l.SetSegment(0, Segment{VNI: 100, VTEP: at(ours)})
	l.want(control.Flood{VNI: 100, VTEP: netip.MustParseAddrPort("192.0.2.2:0"), NoBroadcast: true, NoUnknown: true}.String())
	// Explicit targets compare whole.
	x, _ := route.ParseTarget("192.0.2.9:7")
	l.SetSegment(0, Segment{VNI: 100, VTEP: at(ours), Import: []route.Target{x}})
	l.want()
	l.Learned(0, peer, with(multicast(), func(r *route.Route) { communities2(r, route.Community(x)) }))
	l.want(want[0])
}

// A host route gives way to a host that is here with the address, and follows the later claim.
func TestHostRoutes(t *testing.T) {
	l := newLab(t, nil)
	l.Learned(0, peer, macVRF(mac(2), "10.2.0.2"))
	l.Learned(0, reflector, with(macVRF(mac(2), "10.2.0.2"), func(r *route.Route) {
		r.RD[7] = 8
		r.NextHop = at("192.0.2.3")
		r.Communities += route.Join(route.Mobility(1, false))
	}))
	third := control.Prefix{VRF: "red", Prefix: netip.MustParsePrefix("10.2.0.2/32"), Via: control.Via{VNI: 500, MAC: mac(0xaa), VTEP: netip.MustParseAddrPort("192.0.2.3:0")}, Distance: 20}.String()
	l.want(third, with(row(2, 200, "10.2.0.2"), func(r *control.MAC) { r.VTEP = netip.MustParseAddrPort("192.0.2.3:0") }).String())
	l.Here(0, 200, mac(2), frame.NewDest(3, 0), false)
	l.Speaks(200, mac(2), netip.MustParseAddr("10.2.0.2"), false)
	l.want()
	l.Gone(0, 200, mac(2))
	l.flush()
	if len(l.list()) != 2 {
		t.Error(l.list())
	}
	l.SetVRF(VRF{Name: "red", L3VNI: 500, RouterMAC: mac(0xfd), VTEP: at(ours), NoHostRoutes: true})
	l.flush()
	if got := l.list(); len(got) != 1 {
		t.Error(got)
	}
}

// A route of type 5 to a single address gives way to a host that is here with it, on one of our networks.
func TestPrefixOfHost(t *testing.T) {
	l := newLab(t, nil)
	l.SetSegment(0, Segment{VNI: 200, VTEP: at(ours), VRF: "red", Gateways: []Gateway{{MACs: []frame.MAC{mac(0xfe)},
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.2.0.1/24"), netip.MustParsePrefix("2001:db8:2::1/64")}}}})
	on, off := []string{"10.2.0.9/32", "2001:db8:2::9/128"}, []string{"10.3.0.9/32", "10.2.0.8/30", "0.0.0.0/0"}
	var all, left []string
	for _, p := range append(on, off...) {
		l.Learned(0, peer, prefixRoute(p))
		all = append(all, via(p))
	}
	for _, p := range off {
		left = append(left, via(p))
	}
	l.want(all...)
	l.Here(0, 200, mac(9), frame.NewDest(3, 0), false)
	for _, ip := range []string{"10.2.0.9", "2001:db8:2::9", "10.3.0.9"} {
		l.Speaks(200, mac(9), netip.MustParseAddr(ip), false)
	}
	l.want(left...)
	l.Gone(0, 200, mac(9))
	l.want(all...)
	l.Here(0, 200, mac(9), frame.NewDest(3, 0), false)
	l.want(left...)
	l.Silent(200, mac(9), netip.MustParseAddr("10.2.0.9"))
	l.want(append(left, via(on[0]))...)
}
