package table

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/control/controltest"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

func at(s string) route.Addr { return route.AddrFrom(netip.MustParseAddr(s)) }

func target(as, n uint32) route.Community {
	t, err := route.TargetFrom(as, n)
	if err != nil {
		panic(err)
	}
	return route.Community(t)
}

func mac(n byte) frame.MAC { return frame.MAC{2, 0, 0, 0, 0, n} }

// A lab is a Table, the rows that it has written, and the routes that it has told.
type lab struct {
	t *testing.T
	*Table
	rows  *controltest.Model
	told  map[route.Key]route.Route
	now   time.Duration
	calls int
	lost  []frame.MAC // that were to be forgotten
	roles map[frame.VNI]Role
}

func (l *lab) Advertise(r route.Route) { l.told[r.Key] = r; l.calls++ }
func (l *lab) Withdraw(k route.Key)    { delete(l.told, k); l.calls++ }

var peer, reflector = netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")

const ours = "192.0.2.1"

// newLab has segment 100 without a gateway, 200 with one in VRF red, and L3VNI 500.
func newLab(t *testing.T, edit func(*Config)) *lab {
	l := &lab{t: t, told: map[route.Key]route.Route{}, rows: &controltest.Model{VNIs: []frame.VNI{100, 200, 500}, VRFs: map[string][]frame.VNI{"red": {200, 500}}}}
	c := Config{AS: 65000, RouterID: netip.MustParseAddr(ours), Distance: 20}
	c.Forget = func(_ frame.VNI, m frame.MAC, _ []netip.Addr) { l.lost = append(l.lost, m) }
	l.roles = map[frame.VNI]Role{}
	c.Role = func(vni frame.VNI, port string, r Role) {
		if port != "p1" {
			t.Errorf("a role of port %q", port)
		}
		l.roles[vni] = r
	}
	if edit != nil {
		edit(&c)
	}
	l.Table = New(c)
	l.SetSegment(0, Segment{VNI: 100, VTEP: at(ours)})
	l.SetSegment(0, Segment{VNI: 200, VTEP: at(ours), VRF: "red", Gateways: []Gateway{{MACs: []frame.MAC{mac(0xfe)}, Addresses: []netip.Prefix{netip.MustParsePrefix("10.2.0.1/24")}}}})
	l.SetVRF(VRF{Name: "red", L3VNI: 500, RouterMAC: mac(0xfd), VTEP: at(ours)})
	l.flush()
	return l
}

func (l *lab) flush() {
	l.t.Helper()
	for more := true; more; more = l.More() {
		if err := l.Flush(l.now, "evpn", l.rows, l); err != nil {
			l.t.Error(err)
		}
	}
}

// list returns the rows as text, sorted.
func (l *lab) list() (list []string) {
	for _, r := range l.rows.Rows("evpn") {
		list = append(list, r.String())
	}
	slices.Sort(list)
	return list
}

func (l *lab) want(rows ...string) {
	l.t.Helper()
	l.flush()
	slices.Sort(rows)
	if got := l.list(); !slices.Equal(got, rows) {
		l.t.Errorf("rows\n%q, want\n%q", got, rows)
	}
}

// macIP is a route of type 2 with a label, macVRF one with two.
func macIP(m frame.MAC, ip string) *route.Route {
	r := &route.Route{Key: route.Key{Kind: route.MACIP, RD: route.RD{7: 7}, MAC: m}, NumLabels: 1, NextHop: at("192.0.2.2"), Communities: route.Join(target(65000, 100), route.Encapsulation(route.VXLAN))}
	r.Labels[0] = 100
	if ip != "" {
		r.IP = at(ip)
	}
	return r
}

func macVRF(m frame.MAC, ip string) *route.Route {
	r := macIP(m, ip)
	r.Labels, r.NumLabels = [2]uint32{200, 500}, 2
	r.Communities = route.Join(target(65000, 200), target(65000, 500), route.RouterMAC(mac(0xaa)))
	return r
}

func multicast() *route.Route {
	r := &route.Route{Key: route.Key{Kind: route.Multicast, RD: route.RD{7: 7}, IP: at("192.0.2.2")}, NumLabels: 1, NextHop: at("192.0.2.2"), Tunnel: at("192.0.2.2"), TunnelType: ingressReplication,
		Communities: route.Join(target(65000, 100))}
	r.Labels[0] = 100
	return r
}

func prefixRoute(p string) *route.Route {
	x := netip.MustParsePrefix(p)
	r := &route.Route{Key: route.Key{Kind: route.Prefix, RD: route.RD{7: 7}, IP: route.AddrFrom(x.Addr()), Bits: uint8(x.Bits())}, NumLabels: 1, NextHop: at("192.0.2.2"),
		Communities: route.Join(target(65000, 500), route.RouterMAC(mac(0xaa)))}
	r.Labels[0] = 500
	return r
}

func with[T any](x *T, edit func(*T)) *T {
	edit(x)
	return x
}

func communities2(r *route.Route, c ...route.Community) { r.Communities = route.Join(c...) }

// Whatever is wrong with a route has a name, and leaves no row; without it, the same route is used.
func TestLeftOut(t *testing.T) {
	for _, c := range []struct {
		want string
		r    *route.Route
		edit func(*route.Route)
	}{
		{leftTarget, macIP(mac(1), ""), func(r *route.Route) { r.Communities = "" }},
		{leftTarget, macIP(mac(1), ""), func(r *route.Route) { communities2(r, target(65000, 101)) }},
		{leftTarget, multicast(), func(r *route.Route) { communities2(r, target(65000, 500)) }}, // hosts of an L3VNI
		{leftTarget, prefixRoute("10.9.0.0/16"), func(r *route.Route) { communities2(r, target(65000, 100), route.RouterMAC(mac(0xaa))) }},
		{leftEncapsulation, macIP(mac(1), ""), func(r *route.Route) { communities2(r, target(65000, 100), route.Encapsulation(10)) }},
		{leftOwn, macIP(mac(1), ""), func(r *route.Route) { r.NextHop = at(ours) }},
		{leftOwn, multicast(), func(r *route.Route) { r.NextHop = at(ours) }},
		{leftOwn, multicast(), func(r *route.Route) { r.Tunnel = at(ours) }},
		{leftNextHop, macIP(mac(1), ""), func(r *route.Route) { r.NextHop = route.Addr{} }},
		{leftNextHop, macIP(mac(1), ""), func(r *route.Route) { r.NextHop = at("0.0.0.0") }},
		{leftNextHop, macIP(mac(1), ""), func(r *route.Route) { r.NextHop = at("224.0.0.5") }},
		{leftNextHop, macIP(mac(1), ""), func(r *route.Route) { r.NextHop = at("127.0.0.1") }},
		{leftNextHop, macIP(mac(1), ""), func(r *route.Route) { r.NextHop = at("255.255.255.255") }},
		{leftNextHop, macIP(mac(1), ""), func(r *route.Route) { r.NextHop = at("2001:db8::2") }},
		{leftNextHop, macIP(mac(1), ""), func(r *route.Route) { r.NextHop = at("fe80::2") }},
		{leftNextHop, macIP(mac(1), ""), func(r *route.Route) { r.NextHop = at("0.0.0.2") }},
		{leftNextHop, prefixRoute("10.9.0.0/16"), func(r *route.Route) { r.NextHop = at("2001:db8::2") }},
		{leftMAC, macIP(mac(1), ""), func(r *route.Route) { r.MAC = frame.MAC{} }},
		{leftMAC, macIP(mac(1), ""), func(r *route.Route) { r.MAC = frame.Broadcast }},
		{leftMAC, macIP(mac(1), ""), func(r *route.Route) { r.MAC[0] = 3 }},
		{leftLabel, macIP(mac(1), ""), func(r *route.Route) { r.Labels[0] = 0 }},
		{leftLabel, macIP(mac(1), ""), func(r *route.Route) { r.NumLabels = 0 }},
		{leftLabel, multicast(), func(r *route.Route) { r.Labels[0] = 101 }},
		{leftLabel, prefixRoute("10.9.0.0/16"), func(r *route.Route) { r.Labels[0] = 0 }},
		{leftAddress, macIP(mac(1), "10.0.0.1"), func(r *route.Route) { r.IP = at("127.0.0.1") }},
		{leftAddress, macIP(mac(1), "10.0.0.1"), func(r *route.Route) { r.IP = at("224.0.0.1") }},
		{leftAddress, macIP(mac(1), "10.0.0.1"), func(r *route.Route) { r.IP = at("0.0.0.0") }},
		{leftAddress, macIP(mac(1), "10.0.0.1"), func(r *route.Route) { r.IP = at("ff02::1") }},
		{leftAddress, macIP(mac(1), "10.0.0.1"), func(r *route.Route) { r.IP = at("0.0.0.1") }},
		{leftAddress, macIP(mac(1), "10.0.0.1"), func(r *route.Route) { r.IP = mapped("10.0.0.1") }},
		{leftTunnel, multicast(), func(r *route.Route) { r.TunnelType = 3 }},
		{leftTunnel, multicast(), func(r *route.Route) { r.TunnelType = 0 }},
		{leftTunnel, multicast(), func(r *route.Route) { r.Tunnel = route.Addr{} }},
		{leftTunnel, multicast(), func(r *route.Route) { r.Tunnel = at("224.0.0.5") }},
		{leftTunnel, multicast(), func(r *route.Route) { r.Tunnel = at("127.0.0.1") }},
		{leftTunnel, multicast(), func(r *route.Route) { r.Tunnel = at("0.0.0.2") }},
		{leftRouterMAC, prefixRoute("10.9.0.0/16"), func(r *route.Route) { communities2(r, target(65000, 500)) }},
		{leftRouterMAC, prefixRoute("10.9.0.0/16"), func(r *route.Route) { communities2(r, target(65000, 500), route.RouterMAC(frame.Broadcast)) }},
		{leftRouterMAC, prefixRoute("10.9.0.0/16"), func(r *route.Route) { communities2(r, target(65000, 500), route.RouterMAC(frame.MAC{})) }},
		{leftRouterMAC, prefixRoute("10.9.0.0/16"), func(r *route.Route) { communities2(r, target(65000, 500), route.RouterMAC(mac(0xfd))) }},
		{leftPrefix, prefixRoute("10.9.0.0/16"), func(r *route.Route) { r.IP = at("10.9.0.1") }},
		{leftPrefix, prefixRoute("10.9.0.0/16"), func(r *route.Route) { r.IP = at("224.1.0.0") }},
		{leftPrefix, prefixRoute("10.9.0.0/16"), func(r *route.Route) { r.IP = at("127.1.0.0") }},
		{leftPrefix, prefixRoute("10.9.0.0/16"), func(r *route.Route) { r.IP = at("169.254.0.0") }},
		{leftPrefix, prefixRoute("0.0.0.0/1"), func(r *route.Route) { r.Bits = 8 }}, // half of all addresses, as some divide the default route
		{leftPrefix, prefixRoute("::/1"), func(r *route.Route) { r.Bits = 8 }},
		{leftPrefix, prefixRoute("10.9.0.0/16"), func(r *route.Route) { r.Bits = 33 }},
		{leftPrefix, prefixRoute("10.9.0.0/16"), func(r *route.Route) { r.IP, r.Bits = mapped("10.9.0.0"), 112 }},
		{leftUnderlay, prefixRoute("10.9.0.1/32"), func(r *route.Route) { r.IP = at("192.0.2.2") }},
		{leftUnderlay, prefixRoute("10.9.0.1/32"), func(r *route.Route) { r.IP = at(ours) }},
		{leftOwnAddress, prefixRoute("10.9.0.1/32"), func(r *route.Route) { r.IP = at("10.2.0.1") }},
		{leftOwnAddress, prefixRoute("10.9.0.0/16"), func(r *route.Route) { r.Gateway = at("10.2.0.1") }},
		{leftGateway, prefixRoute("10.9.0.0/16"), func(r *route.Route) { r.Gateway = at("10.77.0.1") }},
		{leftESI, with(whole(), func(r *route.Route) { r.Segment = route.ESI{} }), nil},
		{leftESI, with(rival(), func(r *route.Route) { r.Segment = route.ESI(slices.Repeat([]byte{0xff}, 10)) }), nil},
		{leftESILabel, with(whole(), func(r *route.Route) { communities2(r, target(65000, 100)) }), nil},
		{leftTarget, with(whole(), func(r *route.Route) { communities2(r, target(65000, 101), route.ESILabel(false)) }), nil},
		{leftTarget, rival(), nil}, // we are not on the segment
		{leftTarget, with(alias(), func(r *route.Route) { communities2(r, target(65000, 500)) }), nil},
		{leftTag, with(alias(), func(r *route.Route) { r.Tag = 5 }), nil},
		{leftLabel, with(alias(), func(r *route.Route) { r.NumLabels = 0 }), nil},
		{leftNextHop, with(alias(), func(r *route.Route) { r.NextHop = at("2001:db8::1") }), nil},
		{leftNextHop, with(whole(), func(r *route.Route) { r.NextHop = at("224.0.0.1") }), nil},
		{leftOwn, with(whole(), func(r *route.Route) { r.NextHop = at(ours) }), nil},
		{leftEncapsulation, with(whole(), func(r *route.Route) { r.Communities += route.Join(route.Encapsulation(10)) }), nil},
	} {
		l := newLab(t, nil)
		r := *c.r
		if c.edit != nil {
			l.Learned(0, peer, c.r)
			if l.flush(); len(l.list()) != 1 || len(l.Left()) != 0 {
				t.Errorf("%s: the sound route: %q, left out %v", c.want, l.list(), l.Left())
			}
			l.Withdrawn(0, peer, &c.r.Key)
			c.edit(&r)
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

// Nothing takes the MAC or an address of our gateway, and what VRF red does not accept stays out.
func TestOwn(t *testing.T) {
	l := newLab(t, nil)
	for want, r := range map[string]*route.Route{
		leftOwnMAC:     with(macVRF(mac(0xfe), ""), func(r *route.Route) { r.NumLabels = 1 }),
		leftOwnAddress: macVRF(mac(1), "10.2.0.1"),
		leftAddress:    with(macVRF(mac(1), ""), func(r *route.Route) { r.IP, r.NumLabels = mapped("10.2.0.1"), 1 }),
	} {
		l.Learned(0, peer, r)
		l.flush()
		if left := l.Left(); left[want] != 1 || len(l.list()) != 0 {
			t.Errorf("%s: %v, %q", want, left, l.list())
		}
		l.Withdrawn(0, peer, &r.Key)
	}
	l.SetVRF(VRF{Name: "red", L3VNI: 500, RouterMAC: mac(0xfd), VTEP: at(ours), Accept: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	l.Learned(0, peer, prefixRoute("172.16.0.0/16"))
	l.Learned(0, peer, prefixRoute("0.0.0.0/0"))
	l.Learned(0, peer, prefixRoute("10.9.0.0/16"))
	l.want(via("10.9.0.0/16"))
	if left := l.Left(); left[leftNotAccepted] != 2 {
		t.Error(left)
	}
}

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

func row(n byte, vni frame.VNI, ip string) *control.MAC {
	r := &control.MAC{VNI: vni, MAC: mac(n), VTEP: netip.MustParseAddrPort("192.0.2.2:0")}
	if ip != "" {
		r.IP = netip.MustParseAddr(ip)
	}
	return r
}

func via(p string) string {
	return control.Prefix{VRF: "red", Prefix: netip.MustParsePrefix(p), Via: control.Via{VNI: 500, MAC: mac(0xaa), VTEP: netip.MustParseAddrPort("192.0.2.2:0")}, Distance: 20}.String()
}

// show returns what is told of a kind, as text.
func (l *lab) show(k route.Kind) (list []string) {
	for _, r := range l.told {
		if r.Kind == k {
			seq, sticky := r.Communities.Mobility()
			router, _ := r.Communities.NDFlags()
			rm, _ := r.Communities.RouterMAC()
			var ts []string
			for x := range r.Communities.Targets() {
				ts = append(ts, x.String())
			}
			list = append(list, fmt.Sprintln(r.RD, r.MAC, r.IP, r.Bits, r.Labels[:r.NumLabels], r.NextHop, ts, seq, sticky, router, rm, r.Communities.DefaultGateway()))
		}
	}
	slices.Sort(list)
	return list
}

func (l *lab) wantTold(k route.Kind, want ...string) {
	l.t.Helper()
	l.flush()
	for i := range want {
		want[i] += "\n"
	}
	slices.Sort(want)
	if got := l.show(k); !slices.Equal(got, want) {
		l.t.Errorf("told\n%q, want\n%q", got, want)
	}
}

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

// A host that moves: from a peer to here, to the peer, and away.
func TestMoves(t *testing.T) {
	l := newLab(t, nil)
	here := func() { l.Here(l.now, 100, mac(1), frame.NewDest(3, 0), false) }
	theirs := func(seq uint32) {
		l.Learned(l.now, peer, with(macIP(mac(1), ""), func(r *route.Route) { communities2(r, target(65000, 100), route.Mobility(seq, false)) }))
	}
	told := func(seq int) {
		t.Helper()
		l.flush()
		got := -1
		for k, r := range l.told {
			if k.MAC == mac(1) {
				n, _ := r.Communities.Mobility()
				got = int(n)
			}
		}
		if got != seq {
			t.Errorf("told %d, want %d", got, seq)
		}
	}
	is := row(1, 100, "").String()
	theirs(0)
	l.want(is)
	here()
	told(1)
	l.want()
	theirs(1) // equal: ours is the lower address
	told(1)
	theirs(2)
	told(-1)
	l.want(is)
	l.Gone(l.now, 100, mac(1)) // what the switch says when the row has replaced its entry
	l.want(is)
	here()
	told(3)
	l.Withdrawn(l.now, peer, &macIP(mac(1), "").Key)
	told(3)
	l.Gone(l.now, 100, mac(1))
	told(-1)
	l.now += 200 * time.Second
	here()
	told(3) // remembered
	l.Gone(l.now, 100, mac(1))
	l.flush()
	l.now += 301 * time.Second
	l.flush()
	if len(l.resting) != 0 || len(l.segments[100].hosts) != 0 {
		t.Errorf("%d MACs rest", len(l.resting))
	}
	here()
	told(-1 + 1)
	// A peer has it and loses it before the row is written: nobody knows where it is, so that the switch forgets it.
	theirs(5)
	l.Withdrawn(l.now, peer, &macIP(mac(1), "").Key)
	l.want()
	if !slices.Equal(l.lost, []frame.MAC{mac(1)}) {
		t.Errorf("to be forgotten: %v", l.lost)
	}
	// A sticky host does not come here, and a sequence at the end is sticky.
	for _, c := range []route.Community{route.Mobility(0, true), route.Mobility(1<<32-1, false)} {
		l.Gone(l.now, 100, mac(1))
		l.Learned(l.now, peer, with(macIP(mac(1), ""), func(r *route.Route) { communities2(r, target(65000, 100), c) }))
		l.flush()
		here()
		told(-1)
		l.want(with(row(1, 100, ""), func(r *control.MAC) { r.Sticky = true }).String())
	}
}

// Limits, the distance of routes, and what a VRF says may change at any time; a duplicate ends after Release.
func TestConfigure(t *testing.T) {
	l := newLab(t, nil)
	c := l.cfg
	for i := range 20 {
		l.Learned(0, peer, macIP(frame.MAC{2, 0, 0, 0, 1, byte(i)}, ""))
	}
	l.Learned(0, peer, prefixRoute("10.9.0.0/24"))
	l.flush()
	c.MaxHosts, c.Distance = 16, 30
	l.Configure(c)
	l.flush()
	if n := l.Left()[leftSegmentLimit]; n != 4 || len(l.list()) != 17 || !slices.ContainsFunc(l.list(), func(x string) bool { return strings.Contains(x, "distance 30") }) {
		t.Errorf("%d left out, %q", n, l.list())
	}
	c.MaxHosts = 0
	l.Configure(c)
	l.flush()
	if len(l.Left()) != 0 || len(l.list()) != 21 {
		t.Errorf("%v, %d rows", l.Left(), len(l.list()))
	}

	l.Connected("red", netip.MustParsePrefix("10.2.0.1/24"), 1)
	l.Static("red", netip.MustParsePrefix("10.7.0.0/24"), 1)
	for _, x := range []VRF{{}, {NoConnected: true}, {NoStatic: true}, {NoConnected: true, NoStatic: true}} {
		x.Name, x.L3VNI, x.RouterMAC, x.VTEP = "red", 500, mac(0xfd), at(ours)
		l.SetVRF(x)
		l.flush()
		said := map[string]bool{}
		for k := range l.told {
			if k.Kind == route.Prefix {
				said[k.IP.String()] = true
			}
		}
		if said["10.2.0.0"] == x.NoConnected || said["10.7.0.0"] == x.NoStatic {
			t.Errorf("%+v: %v", x, said)
		}
	}

	l.now = time.Hour
	for i := range 5 {
		l.Learned(l.now, peer, with(macIP(mac(1), ""), func(r *route.Route) { communities2(r, target(65000, 100), route.Mobility(uint32(2*i), false)) }))
		l.Here(l.now, 100, mac(1), frame.NewDest(3, 0), false)
		l.flush()
	}
	duplicates := func() (n int) {
		l.flush()
		for range l.Duplicates() {
			n++
		}
		return n
	}
	if duplicates() != 1 || len(l.frozen) != 1 {
		t.Fatalf("%d duplicates after five moves", duplicates())
	}
	l.now += 24 * time.Hour
	if duplicates() != 1 {
		t.Error("a duplicate has ended by itself")
	}
	c.Release = 25 * time.Hour
	l.Configure(c)
	if duplicates() != 1 {
		t.Error("a duplicate has ended too early")
	}
	l.now += time.Hour
	if duplicates() != 0 || len(l.frozen) != 0 {
		t.Error("a duplicate has not ended")
	}
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

// What peers may add is bounded, and there is room again when others go.
func TestLimits(t *testing.T) {
	l := newLab(t, func(c *Config) { c.MaxHosts, c.MaxAddrs, c.MaxRoutes = 32, 2, 32 })
	key := func(i int) frame.MAC { return frame.MAC{2, 0, 0, 1, byte(i >> 8), byte(i)} }
	for i := range 50 {
		l.Learned(0, peer, macIP(key(i), ""))
		l.Learned(0, peer, prefixRoute(fmt.Sprintf("10.9.%d.0/24", i)))
	}
	for i := range 50 {
		l.Learned(0, reflector, macIP(key(0), fmt.Sprintf("10.0.0.%d", i+1)))
	}
	l.flush()
	if left := l.Left(); left[leftSegmentLimit] != 18 || left[leftVRFLimit] != 18 || left[leftAddressLimit] != 43 {
		t.Error(left)
	}
	for i := range 8 {
		l.Withdrawn(0, peer, &macIP(key(i), "").Key)
		l.Withdrawn(0, peer, &prefixRoute(fmt.Sprintf("10.9.%d.0/24", i)).Key)
	}
	l.Down(0, reflector)
	l.flush()
	l.flush()
	if left := l.Left(); left[leftSegmentLimit] != 10 || left[leftVRFLimit] != 10 || len(left) != 2 {
		t.Error(left)
	}
	for i := range 50 {
		l.Speaks(100, key(60), netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), false)
	}
	if n := len(l.segments[100].hosts[key(60)].addrs); n != 2 {
		t.Errorf("%d addresses", n)
	}
	l.Down(0, peer)
	l.Mark(100)
	l.Sweep(0, 100)
	l.want()
	if len(l.segments[100].hosts)+len(l.vrfs["red"].prefixes) != 0 || len(l.said) != 3 {
		t.Errorf("%d hosts, %d prefixes, %d routes are left", len(l.segments[100].hosts), len(l.vrfs["red"].prefixes), len(l.said))
	}
}

// Whatever peers say and the switch does, in any order: when it has settled, a Table that hears only the end has the same rows and routes,
// and nothing is kept of what is gone.
func TestRandom(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		l := newLab(t, nil)
		end := map[netip.Addr]map[route.Key]*route.Route{peer: {}, reflector: {}}
		for range 200 {
			p := []netip.Addr{peer, reflector}[r.IntN(2)]
			x := randomRoute(r)
			switch r.IntN(14) {
			default:
				l.Learned(0, p, x)
				end[p][x.Key] = x
			case 6, 7:
				l.Withdrawn(0, p, &x.Key)
				delete(end[p], x.Key)
			case 8:
				l.Down(0, p)
				clear(end[p])
			case 9:
				l.DeleteSegment(100)
				l.SetSegment(0, Segment{VNI: 100, VTEP: at(ours)})
			case 10:
				l.SetVRF(VRF{Name: "red", L3VNI: 500, RouterMAC: mac(0xfd), VTEP: at(ours), NoHostRoutes: r.IntN(2) == 0})
			case 11:
				l.flush()
			case 12:
				l.SetEthernets(0, nil)
			case 13:
				l.SetEthernets(0, []EthernetSegment{randomEthernet(r)})
			}
		}
		last := randomEthernet(r)
		l.SetEthernets(0, []EthernetSegment{last})
		l.SetVRF(VRF{Name: "red", L3VNI: 500, RouterMAC: mac(0xfd), VTEP: at(ours)})
		l.flush()
		l.flush()
		fresh := newLab(t, nil)
		fresh.SetEthernets(0, []EthernetSegment{last})
		for p, routes := range end {
			for _, x := range routes {
				fresh.Learned(0, p, x)
			}
		}
		fresh.flush()
		if a, b := l.list(), fresh.list(); !slices.Equal(a, b) {
			t.Fatalf("seed %d:\n%q\n%q", seed, a, b)
		}
		if a, b := fmt.Sprint(l.roles), fmt.Sprint(fresh.roles); a != b {
			t.Fatalf("seed %d: roles %s, want %s", seed, a, b)
		}
		if a, b := fmt.Sprint(l.Left()), fmt.Sprint(fresh.Left()); a != b {
			t.Fatalf("seed %d: left out %s, want %s", seed, a, b)
		}
		l.Down(0, peer)
		l.Down(0, reflector)
		l.flush()
		if got := l.list(); len(got) != 0 || len(l.segments[100].hosts)+len(l.segments[200].hosts)+len(l.segments[100].floods)+len(l.vrfs["red"].prefixes) != 0 {
			t.Fatalf("seed %d: %q are left", seed, got)
		}
		l.SetEthernets(0, nil)
		l.flush()
		l.empty()
	}
}

func randomEthernet(r *rand.Rand) EthernetSegment {
	return atPort3(EthernetSegment{ESI: route.ESI{3, byte(r.IntN(2))}, Port: "p1", Up: r.IntN(4) > 0, VNIs: [][]frame.VNI{{100}, {100, 200}}[r.IntN(2)],
		SingleActive: r.IntN(2) == 0, Election: route.Election{Algorithm: uint8(r.IntN(3))}})
}

func randomRoute(r *rand.Rand) *route.Route {
	var x *route.Route
	switch r.IntN(7) {
	case 4:
		x = whole()
		communities2(x, target(65000, 100), route.ESILabel(r.IntN(4) == 0))
	case 5:
		x = alias()
		x.Labels[0] = uint32(r.IntN(2)) * 100
	case 6:
		x = rival()
		x.IP = at([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}[r.IntN(3)])
	case 0:
		x = macIP(mac(byte(r.IntN(3))), []string{"", "10.0.0.1", "10.0.0.2"}[r.IntN(3)])
		x.Communities += route.Join(route.Mobility(uint32(r.IntN(3)), r.IntN(8) == 0))
	case 1:
		x = macVRF(mac(byte(r.IntN(3))), []string{"10.2.0.1", "10.2.0.2", "10.2.0.3"}[r.IntN(3)])
		x.Communities += route.Join(route.Mobility(uint32(r.IntN(3)), false))
	case 2:
		x = multicast()
	case 3:
		x = prefixRoute([]string{"10.9.0.0/16", "10.2.0.2/32", "224.0.0.0/8"}[r.IntN(3)])
	}
	x.NextHop = at([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}[r.IntN(4)])
	x.RD[7] = byte(r.IntN(2))
	if id := (route.ESI{3, byte(r.IntN(2))}); x.Kind == route.AutoDiscovery || x.Kind == route.Segment {
		x.Segment = id
	} else if r.IntN(2) == 0 && x.Kind == route.MACIP {
		x.ESI = id
	}
	return x
}
