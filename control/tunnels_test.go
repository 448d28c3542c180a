package control_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/vtep"
)

// A segment in two VTEPs: rows name the one they are for, those that name none are for the
// first; a VTEP is told who may send frames of which VNI, as long as any row says so.
func TestTunnels(t *testing.T) {
	l := newLeaf(t, control.Config{})
	u, err := l.net.Listen(netip.MustParseAddrPort("[fd00::1]:4789"), nil)
	l.must(err)
	six, err := vtep.New(&vtep.Config{Name: "six", Peers: vtep.ListedPerVNI}, u)
	l.must(err)
	_, err = l.segment(red).Attach(six, 7100)
	l.must(err)
	four := l.vtep.VTEP
	p4, p6 := netip.MustParseAddrPort("10.0.0.9:4789"), netip.MustParseAddrPort("[fd00::9]:4789")
	want := func(what string, flood4, allowed4, flood6, allowed6 []netip.AddrPort) {
		t.Helper()
		for i, c := range []struct{ got, want []netip.AddrPort }{
			{four.Flood(red), flood4}, {four.Allowed(red), allowed4}, {six.Flood(7100), flood6}, {six.Allowed(7100), allowed6},
		} {
			if !slices.Equal(c.got, c.want) {
				t.Errorf("%s: list %d is %v, want %v", what, i, c.got, c.want)
			}
		}
	}
	program := func(u control.Update) error { return l.Program("bgp", u) }
	one := func(a netip.AddrPort) []netip.AddrPort { return []netip.AddrPort{a} }

	l.must(program(control.Update{Snapshot: true, Add: []control.Route{
		control.Flood{VNI: red, VTEP: p4}, control.Flood{VNI: red, VTEP: p6, Tunnel: "six"},
		control.MAC{VNI: red, MAC: mac(1), VTEP: p4}, control.MAC{VNI: red, MAC: mac(2), VTEP: p6, Tunnel: "six"},
		control.MAC{VNI: red, MAC: mac(3), VTEP: p6, Tunnel: "six"},
	}}))
	want("all", one(p4), one(p4), one(p6), one(p6))
	for m, name := range map[frame.MAC]string{mac(1): p4.String(), mac(2): p6.String(), mac(3): p6.String()} {
		if d, ok := l.segment(red).FDB().Lookup(m); !ok || l.sw.Name(d) != name {
			t.Errorf("%v is at %q, want %s", m, l.sw.Name(d), name)
		}
	}
	l.must(program(control.Update{Del: []control.Route{control.MAC{VNI: red, MAC: mac(2)}, control.Flood{VNI: red, VTEP: p6, Tunnel: "six"}}}))
	want("one MAC less", one(p4), one(p4), nil, one(p6))
	l.must(program(control.Update{Add: []control.Route{control.MAC{VNI: red, MAC: mac(3), VTEP: p4}}}))
	want("a MAC moves to the other VTEP", one(p4), one(p4), nil, nil)
	if d, ok := l.segment(red).FDB().Lookup(mac(3)); !ok || l.sw.Name(d) != p4.String() {
		t.Errorf("it is at %q", l.sw.Name(d))
	}
	// A router behind a VTEP is a MAC there.
	via := control.Via{VNI: red, MAC: mac(0x77), VTEP: p6, Tunnel: "six"}
	l.must(program(control.Update{Add: []control.Route{control.Prefix{VRF: "red", Prefix: netip.MustParsePrefix("172.16.0.0/16"), Via: via}}}))
	want("a router", one(p4), one(p4), nil, one(p6))

	for _, c := range []struct {
		row  control.Route
		want error
	}{
		{control.Flood{VNI: red, VTEP: p6, Tunnel: "seven"}, control.ErrNoVTEP},
		{control.MAC{VNI: blue, MAC: mac(4), VTEP: p6, Tunnel: "six"}, control.ErrNoVTEP},
		{control.MAC{VNI: red, MAC: mac(4), Port: "pipe", Tunnel: "six"}, nil},
		{control.Prefix{VRF: "red", Prefix: netip.MustParsePrefix("172.17.0.0/16"), Via: control.Via{VNI: red, Tunnel: "six", IP: netip.MustParseAddr("192.168.7.1")}}, nil},
		{control.MAC{VNI: red, MAC: mac(4), VTEP: p4, Tunnel: "six"}, nil}, // of the other family
	} {
		if err := program(control.Update{Add: []control.Route{c.row}}); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.row, err)
		}
	}
	want("after errors", one(p4), one(p4), nil, one(p6))
	l.Forget("bgp")
	want("forgotten", nil, nil, nil, nil)
}
