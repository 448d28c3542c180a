package l3

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Routes: the longest prefix, next hops by flow, VRFs apart, changes as a whole.
func TestRoutes(t *testing.T) {
	l := newLab(t, nil)
	l3vni := check.Must(l.vrf.NewInterface(&InterfaceConfig{VNI: 50, MAC: gate(50), Send: l.send(50)}))(t)
	tun := check.Must(l.vrf.NewInterface(&InterfaceConfig{VNI: 60, Port: frame.NewDest(6, 0), Send: l.send(60)}))(t)
	router := frame.MAC{2, 0, 0, 0, 5, 5}
	p := netip.MustParsePrefix
	check.OK(t, l.vrf.Add(Route{p("0.0.0.0/0"), []NextHop{{Interface: tun}}}))
	check.OK(t, l.vrf.Add(Route{p("172.16.0.0/12"), []NextHop{{Interface: l3vni, MAC: router}}}))
	check.OK(t, l.vrf.Add(Route{p("172.16.1.0/24"), []NextHop{{Interface: l.i20, IP: at4(20, 4)}}}))
	l.knows(l.i20, 4, 0)
	send := func(dst string) (frame.Verdict, frame.Frame) {
		s := between(false, 1, 4)
		s.dst = netip.MustParseAddr(dst)
		return l.in(l.i10, s.bytes(t))
	}
	v, f := send("172.16.1.9")
	check.True(t, v == frame.Reenter && f.VNI == 20 && frame.MAC(f.Bytes()) == host(4), "%v %d", v, f.VNI)
	v, f = send("172.17.1.9")
	if v != frame.Reenter || f.VNI != 50 || frame.MAC(f.Bytes()) != router || frame.MAC(f.Bytes()[6:]) != gate(50) {
		t.Errorf("%v %d", v, f.VNI)
	}
	v, f = send("8.8.8.8")
	if v != frame.Forward(frame.NewDest(6, 0)) || f.VNI != 60 || f.Kind != frame.IPv4 || f.From != 0 {
		t.Fatalf("%v %d", v, f.VNI)
	}
	want := between(false, 1, 4)
	want.dst, want.ttl, want.noEthernet = netip.MustParseAddr("8.8.8.8"), 63, true
	check.True(t, bytes.Equal(f.Bytes(), want.bytes(t)), "% x", f.Bytes())
	short := between(false, 1, 4)
	short.dst, short.payload = want.dst, 0
	v, f = l.in(l.i10, append(short.bytes(t)[:42], make([]byte, 18)...))
	short.ttl, short.noEthernet = 63, true
	if out := short.bytes(t); v != frame.Forward(frame.NewDest(6, 0)) || !bytes.Equal(f.Bytes(), out) {
		t.Errorf("padded: %v, % x, want % x", v, f.Bytes(), out)
	}
	// And back in from the TUN, and from the other router.
	back := shape{src: netip.MustParseAddr("8.8.8.8"), dst: at4(20, 4), ttl: 10, payload: 20, noEthernet: true}
	g := frame.Make(back.bytes(t))
	g.Kind, g.VNI, g.From = frame.IPv4, 60, frame.NewDest(6, 0)
	back.ttl, back.noEthernet, back.to, back.from = 9, false, host(4), gate(20)
	if v := tun.Process(&g, frame.At{}); v != frame.Reenter || g.Kind != frame.Ethernet || !bytes.Equal(g.Bytes(), back.bytes(t)) {
		t.Errorf("%v: % x", v, g.Bytes())
	}
	back.to, back.from, back.ttl = gate(50), router, 9
	if v, f := l.in(l3vni, back.bytes(t)); v != frame.Reenter || f.VNI != 20 {
		t.Errorf("%v", v)
	}
	// An L3VNI has no address: its errors come from the lowest interface that has.
	back.ttl = 1
	if v, f := l.in(l3vni, back.bytes(t)); v != frame.Reply || !bytes.Equal(f.Bytes()[26:30], at4(10, 254).AsSlice()) {
		t.Errorf("%v % x", v, f.Bytes())
	}
	// Another VRF has other routes, also for the same addresses.
	blue := l.g.VRF("blue")
	b10 := l.iface(blue, 110, false)
	s := between(false, 1, 4)
	s.to = gate(110)
	check.Equal(t, "another VRF's network", l.verdict(b10, s.bytes(t)), frame.Reply)
	for _, c := range []struct {
		r    Route
		want string
	}{
		{Route{p("10.8.0.0/16"), []NextHop{{Interface: b10, IP: at4(110, 1)}}}, "Interface: nil, closed or of another VRF"},
		{Route{p("10.8.0.0/16"), []NextHop{{Interface: tun}, {}}}, "Interface: nil, closed or of another VRF"},
		{Route{p("10.8.0.1/16"), nil}, "without host bits"},
		{Route{netip.Prefix{}, nil}, "must be a prefix"},
		{Route{p("10.8.0.0/16"), []NextHop{{Interface: l.i10}}}, "IP: an address of the family"},
		{Route{p("10.8.0.0/16"), []NextHop{{Interface: l.i10, IP: at6(10, 1)}}}, "IP: an address of the family"},
		{Route{p("10.8.0.0/16"), []NextHop{{Interface: l3vni, IP: at4(10, 1)}}}, "has no Neighbours"},
		{Route{p("10.8.0.0/16"), []NextHop{{Interface: l3vni, MAC: frame.Broadcast}}}, "MAC"},
		{Route{p("10.0.20.0/24"), nil}, "belongs to an interface's address"},
	} {
		check.ErrorHas(t, l.vrf.Add(c.r), "l3: ", c.want, "VRF red: route "+c.r.Prefix.String())
	}
	if got := len(l.vrf.Routes()); got != 3 {
		t.Errorf("%d routes: %v", got, l.vrf.Routes())
	}
	if l.vrf.Delete(p("10.0.20.0/24")) || !l.vrf.Delete(p("172.16.1.0/24")) || l.vrf.Delete(p("172.16.1.0/24")) {
		t.Error("Delete")
	}
	check.OK(t, l.vrf.Add(Route{p("172.30.0.0/16"), []NextHop{{Interface: tun}, {Interface: l3vni, MAC: router}}}))
	check.OK(t, tun.Close())
	check.OK(t, tun.Close())
	if v, f := send("172.30.1.1"); v != frame.Reenter || f.VNI != 50 || len(l.vrf.Routes()) != 2 {
		t.Errorf("the next hop that is left: %v, VNI %d, %v", v, f.VNI, l.vrf.Routes())
	}
	if v, _ := send("8.8.8.8"); v != frame.Reply {
		t.Errorf("through an interface that is gone: %v", v)
	}
}

// A next hop that goes moves only its own flows; all packets of a flow go one way.
func TestMultipath(t *testing.T) {
	l := newLab(t, nil)
	var hops []NextHop
	for n := range byte(4) {
		l.knows(l.i20, n+1, 0)
		hops = append(hops, NextHop{Interface: l.i20, IP: at4(20, n+1)})
	}
	p := netip.MustParsePrefix("172.16.0.0/12")
	ways := func(n int) (w []frame.MAC) {
		check.OK(t, l.vrf.Add(Route{p, hops[:n]}))
		for k := range 2000 {
			s := between(false, 1, 4)
			s.dst, s.sport = netip.MustParseAddr("172.16.1.1"), uint16(k)
			v, f := l.in(l.i10, s.bytes(t))
			check.Need(t, v == frame.Reenter, "%v", v)
			w = append(w, frame.MAC(f.Bytes()))
		}
		return w
	}
	four, three := ways(4), ways(3)
	count := map[frame.MAC]int{}
	for k := range four {
		count[four[k]]++
		if four[k] != host(4) && four[k] != three[k] {
			t.Fatalf("flow %d moved from %v to %v", k, four[k], three[k])
		}
	}
	for n := range byte(4) {
		if c := count[host(n+1)]; c < 400 || c > 600 {
			t.Errorf("next hop %d has %d of 2000 flows", n+1, c)
		}
	}
	check.True(t, slices.Equal(four, ways(4)), "a flow changed its way")
}
