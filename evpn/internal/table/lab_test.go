package table

import (
	"fmt"
	"net/netip"
	"slices"
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

// duplicates returns how many hosts are at more than one place.
func (l *lab) duplicates() (n int) {
	l.flush()
	for range l.Duplicates() {
		n++
	}
	return n
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
