package table

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// Whatever is wrong with a route has a name, and leaves no row; without it, the same route is used.
func TestLeftOut(t *testing.T) {
	type edits = []func(*route.Route)
	says := func(c ...route.Community) func(*route.Route) {
		return func(r *route.Route) { communities2(r, c...) }
	}
	each := func(of func(*route.Route) *route.Addr, list ...string) (es edits) {
		for _, s := range list {
			es = append(es, func(r *route.Route) { *of(r) = at(s) })
		}
		return es
	}
	nextHop := func(r *route.Route) *route.Addr { return &r.NextHop }
	ip := func(r *route.Route) *route.Addr { return &r.IP }
	tunnel := func(r *route.Route) *route.Addr { return &r.Tunnel }
	gateway := func(r *route.Route) *route.Addr { return &r.Gateway }
	host, hostIP, prefix, single := macIP(mac(1), ""), macIP(mac(1), "10.0.0.1"), prefixRoute("10.9.0.0/16"), prefixRoute("10.9.0.1/32")
	for _, c := range []struct {
		want string
		r    *route.Route
		edits
	}{
		{leftTarget, host, edits{says(), says(target(65000, 101))}},
		{leftTarget, multicast(), edits{says(target(65000, 500))}}, // hosts of an L3VNI
		{leftTarget, prefix, edits{says(target(65000, 100), route.RouterMAC(mac(0xaa)))}},
		{leftEncapsulation, host, edits{says(target(65000, 100), route.Encapsulation(10))}},
		{leftOwn, host, each(nextHop, ours)},
		{leftOwn, multicast(), each(nextHop, ours)},
		{leftOwn, multicast(), each(tunnel, ours)},
		{leftNextHop, host, edits{func(r *route.Route) { r.NextHop = route.Addr{} }}},
		{leftNextHop, host, each(nextHop, "0.0.0.0", "224.0.0.5", "127.0.0.1", "255.255.255.255", "2001:db8::2", "fe80::2", "0.0.0.2")},
		{leftNextHop, prefix, each(nextHop, "2001:db8::2")},
		{leftMAC, host, edits{func(r *route.Route) { r.MAC = frame.MAC{} }, func(r *route.Route) { r.MAC = frame.Broadcast }, func(r *route.Route) { r.MAC[0] = 3 }}},
		{leftLabel, host, edits{func(r *route.Route) { r.Labels[0] = 0 }, func(r *route.Route) { r.NumLabels = 0 }}},
		{leftLabel, multicast(), edits{func(r *route.Route) { r.Labels[0] = 101 }}},
		{leftLabel, prefix, edits{func(r *route.Route) { r.Labels[0] = 0 }}},
		{leftAddress, hostIP, each(ip, "127.0.0.1", "224.0.0.1", "0.0.0.0", "ff02::1", "0.0.0.1")},
		{leftAddress, hostIP, edits{func(r *route.Route) { r.IP = mapped("10.0.0.1") }}},
		{leftTunnel, multicast(), edits{func(r *route.Route) { r.TunnelType = 3 }, func(r *route.Route) { r.TunnelType = 0 }, func(r *route.Route) { r.Tunnel = route.Addr{} }}},
		{leftTunnel, multicast(), each(tunnel, "224.0.0.5", "127.0.0.1", "0.0.0.2")},
		{leftRouterMAC, prefix, edits{says(target(65000, 500)), says(target(65000, 500), route.RouterMAC(frame.Broadcast)),
			says(target(65000, 500), route.RouterMAC(frame.MAC{})), says(target(65000, 500), route.RouterMAC(mac(0xfd)))}},
		{leftPrefix, prefix, each(ip, "10.9.0.1", "224.1.0.0", "127.1.0.0", "169.254.0.0")},
		{leftPrefix, prefix, edits{func(r *route.Route) { r.Bits = 33 }, func(r *route.Route) { r.IP, r.Bits = mapped("10.9.0.0"), 112 }}},
		{leftPrefix, prefixRoute("0.0.0.0/1"), edits{func(r *route.Route) { r.Bits = 8 }}}, // half of all addresses, as some divide the default route
		{leftPrefix, prefixRoute("::/1"), edits{func(r *route.Route) { r.Bits = 8 }}},
		{leftUnderlay, single, each(ip, "192.0.2.2", ours)},
		{leftOwnAddress, single, each(ip, "10.2.0.1")},
		{leftOwnAddress, prefix, each(gateway, "10.2.0.1")},
		{leftGateway, prefix, each(gateway, "10.77.0.1")},
		{leftESI, with(whole(), func(r *route.Route) { r.Segment = route.ESI{} }), nil},
		{leftESI, with(rival(), func(r *route.Route) { r.Segment = route.ESI(slices.Repeat([]byte{0xff}, 10)) }), nil},
		{leftESILabel, with(whole(), says(target(65000, 100))), nil},
		{leftTarget, with(whole(), says(target(65000, 101), route.ESILabel(false))), nil},
		{leftTarget, rival(), nil}, // we are not on the segment
		{leftTarget, with(alias(), says(target(65000, 500))), nil},
		{leftTag, with(alias(), func(r *route.Route) { r.Tag = 5 }), nil},
		{leftLabel, with(alias(), func(r *route.Route) { r.NumLabels = 0 }), nil},
		{leftNextHop, with(alias(), func(r *route.Route) { r.NextHop = at("2001:db8::1") }), nil},
		{leftNextHop, with(whole(), func(r *route.Route) { r.NextHop = at("224.0.0.1") }), nil},
		{leftOwn, with(whole(), func(r *route.Route) { r.NextHop = at(ours) }), nil},
		{leftEncapsulation, with(whole(), func(r *route.Route) { r.Communities += route.Join(route.Encapsulation(10)) }), nil},
		// Nothing takes the MAC or an address of our gateway.
		{leftOwnMAC, with(macVRF(mac(0xfe), ""), func(r *route.Route) { r.NumLabels = 1 }), nil},
		{leftOwnAddress, macVRF(mac(1), "10.2.0.1"), nil},
		{leftAddress, with(macVRF(mac(1), ""), func(r *route.Route) { r.IP, r.NumLabels = mapped("10.2.0.1"), 1 }), nil},
	} {
		if c.edits == nil {
			c.edits = edits{nil}
		}
		for _, edit := range c.edits {
			l := newLab(t, nil)
			r := *c.r
			if edit != nil {
				l.Learned(0, peer, c.r)
				if l.flush(); len(l.list()) != 1 || len(l.Left()) != 0 {
					t.Errorf("%s: the sound route: %q, left out %v", c.want, l.list(), l.Left())
				}
				l.Withdrawn(0, peer, &c.r.Key)
				edit(&r)
			}
			l.Learned(0, peer, &r)
			l.flush()
			if left := l.Left(); left[c.want] != 1 || len(left) != 1 || len(l.list()) != 0 {
				t.Errorf("%+v: left out %v, rows %q; want %s", r, left, l.list(), c.want)
			}
			l.Learned(0, peer, &r) // once more is not more
			l.Down(0, peer)
			l.flush()
			if len(l.Left()) != 0 || len(l.list()) != 0 || len(l.peers) != 0 {
				t.Errorf("%s: after the peer is gone: left out %v, rows %q", c.want, l.Left(), l.list())
			}
		}
	}
}

// What VRF red does not accept stays out.
func TestNotAccepted(t *testing.T) {
	l := newLab(t, nil)
	l.SetVRF(VRF{Name: "red", L3VNI: 500, RouterMAC: mac(0xfd), VTEP: at(ours), Accept: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for _, p := range []string{"172.16.0.0/16", "0.0.0.0/0", "10.9.0.0/16"} {
		l.Learned(0, peer, prefixRoute(p))
	}
	l.want(via("10.9.0.0/16"))
	if left := l.Left(); left[leftNotAccepted] != 2 {
		t.Error(left)
	}
}
