package l3

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// What an interface was the only way to is dropped while it is held, not sent where a shorter
// prefix leads; what has another way goes there; nobody sees that anything is held.
func TestHold(t *testing.T) {
	l := newLab(t, nil)
	tun, err := l.vrf.NewInterface(&InterfaceConfig{VNI: 60, Port: frame.NewDest(6, 0), Send: l.send(60)})
	must(t, err)
	p := netip.MustParsePrefix
	via20 := NextHop{Interface: l.i20, IP: at4(20, 4)}
	must(t, l.vrf.Add(Route{p("0.0.0.0/0"), []NextHop{{Interface: tun}}}, Route{p("172.16.1.0/24"), []NextHop{via20}},
		Route{p("172.16.2.0/24"), []NextHop{via20, {Interface: tun}}}))
	l.knows(l.i20, 4, 0)
	want := func(what string, verdicts map[string]string) {
		t.Helper()
		for dst, want := range verdicts {
			s := between(false, 1, 4)
			s.dst = netip.MustParseAddr(dst)
			v, f := l.in(l.i10, s.bytes(t))
			got := "dropped"
			switch {
			case v == frame.Reenter && f.VNI == 20:
				got = "20"
			case v.Action() == frame.ActForward:
				got = "default"
			case v != frame.Drop(frame.NoRoute):
				got = v.String()
			}
			if got != want {
				t.Errorf("%s: %s: %s, want %s", what, dst, got, want)
			}
		}
	}
	const connected, routed, two, other = "10.0.20.4", "172.16.1.1", "172.16.2.1", "8.8.8.8"
	want("before", map[string]string{connected: "20", routed: "20", other: "default"})
	must(t, l.i20.Hold())
	must(t, l.i20.Hold())
	must(t, l.i20.Close())
	held := map[string]string{connected: "dropped", routed: "dropped", "10.0.20.254": "dropped", two: "default", other: "default"}
	want("held", held)
	if n := len(l.vrf.Routes()); n != 2 {
		t.Errorf("%d routes: %v", n, l.vrf.Routes())
	}
	if _, ok := l.vrf.Route(p("172.16.1.0/24")); ok || l.vrf.Delete(p("172.16.1.0/24")) {
		t.Error("a route that is held is there")
	}
	want("still held", held)

	l.i20 = l.iface(l.vrf, 20, false)
	l.knows(l.i20, 4, 0)
	via20.Interface = l.i20
	want("another interface", map[string]string{connected: "20", routed: "dropped", two: "default", other: "default"})
	must(t, l.vrf.Add(Route{p("172.16.1.0/24"), []NextHop{via20}}))
	l.vrf.Release()
	want("released", map[string]string{connected: "20", routed: "20", two: "default", other: "default"})
	must(t, l.i20.Hold())
	l.vrf.Release()
	want("gone", map[string]string{connected: "default", routed: "default", two: "default", other: "default"})
}
