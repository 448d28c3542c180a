package l3

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// What an interface was the only way to is dropped while it is held, not sent where a shorter
// prefix leads; what has another way goes there; nobody sees that anything is held.
func TestHold(t *testing.T) {
	l := newLab(t, nil)
	tun := check.Must(l.vrf.NewInterface(&InterfaceConfig{VNI: 60, Port: frame.NewDest(6, 0), Send: l.send(60)}))(t)
	p := netip.MustParsePrefix
	via20 := NextHop{Interface: l.i20, IP: at4(20, 4)}
	check.OK(t, l.vrf.Add(Route{p("0.0.0.0/0"), []NextHop{{Interface: tun}}}, Route{p("172.16.1.0/24"), []NextHop{via20}},
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
			check.True(t, got == want, "%s: %s: %s, want %s", what, dst, got, want)
		}
	}
	const connected, routed, two, other = "10.0.20.4", "172.16.1.1", "172.16.2.1", "8.8.8.8"
	want("before", map[string]string{connected: "20", routed: "20", other: "default"})
	check.OK(t, l.i20.Hold())
	check.OK(t, l.i20.Hold())
	check.OK(t, l.i20.Close())
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
	check.OK(t, l.vrf.Add(Route{p("172.16.1.0/24"), []NextHop{via20}}))
	l.vrf.Release()
	want("released", map[string]string{connected: "20", routed: "20", two: "default", other: "default"})
	check.OK(t, l.i20.Hold())
	l.vrf.Release()
	want("gone", map[string]string{connected: "default", routed: "default", two: "default", other: "default"})
}

// Packets wait for a next hop that is not known, three at most, and leave in order when it
// has spoken. One that does not answer is asked three times; then senders are told.
func TestUnresolved(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		for k := range 5 {
			s := between(v6, 1, 4)
			s.sport = uint16(k)
			want := frame.Consume
			if k >= 3 {
				want = frame.Drop(frame.Unresolved)
			}
			if v, _ := l.in(l.i10, s.bytes(t)); v != want {
				t.Fatalf("packet %d: %v", k, v)
			}
		}
		check.Need(t, len(l.injected) == 1 && l.injected[0].vni == 20, "asked %d times", len(l.injected))
		q := l.injected[0].f.Bytes()
		check.True(t, frame.MAC(q).IsGroup() && frame.MAC(q[6:]) == gate(20), "asked: % x", q)
		if !v6 && !bytes.Equal(q[28:32], at4(20, 254).AsSlice()) {
			t.Errorf("asked in the name of % x", q[28:32])
		}
		l.injected = nil
		l.knows(l.i20, 4, 0)
		check.Need(t, len(l.injected) == 3, "%d left", len(l.injected))
		for k, x := range l.injected {
			want := between(v6, 1, 4)
			want.sport, want.ttl, want.from, want.to = uint16(k), 63, gate(20), host(4)
			if x.vni != 20 || !bytes.Equal(x.f.Bytes(), want.bytes(t)) {
				t.Errorf("packet %d: % x", k, x.f.Bytes())
			}
		}
		if n := l.g.queued(); n != 0 || l.i20.Stats().Waiting != 0 {
			t.Errorf("%d bytes wait", n)
		}
		// Nobody is at 5.
		l.injected = nil
		for range 2 {
			l.in(l.i10, between(v6, 1, 5).bytes(t))
		}
		for l.now = 1; l.now < 4; l.now++ {
			l.i20.Housekeep(l.now)
		}
		var asked, told int
		for _, x := range l.injected {
			if x.vni == 20 {
				asked++
				continue
			}
			told++
			checkError(t, x.f.Bytes(), between(v6, 1, 5).bytes(t), v6, 3<<8|1, 1<<8|3, at4(10, 254), at6(10, 254))
		}
		if asked != 3 || told != 2 || l.g.queued() != 0 {
			t.Errorf("asked %d times, told %d, %d bytes wait", asked, told, l.g.queued())
		}
		// For a while nobody waits; then it is asked anew.
		if v, _ := l.in(l.i10, between(v6, 1, 5).bytes(t)); v != frame.Reply {
			t.Errorf("%v", v)
		}
		for range retryAfter {
			l.now++
			l.i20.Housekeep(l.now)
		}
		if v, _ := l.in(l.i10, between(v6, 1, 5).bytes(t)); v != frame.Consume {
			t.Errorf("%v", v)
		}
	}
}

// What waits is bounded: in bytes, in next hops, and in packets for each. What has been waiting
// longest makes room.
func TestUnresolvedBounds(t *testing.T) {
	l := newLab(t, &GatewayConfig{Queued: 1000})
	for k := range 20 {
		s := between(false, 1, byte(k+1))
		check.Equal(t, fmt.Sprint(k), l.verdict(l.i10, s.bytes(t)), frame.Consume)
	}
	if n := l.g.queued(); n != 9*106 || l.i20.Stats().Unresolved != 11 {
		t.Errorf("%d bytes, %+v", n, l.i20.Stats())
	}
	l.injected = nil
	for k := range 20 {
		if l.knows(l.i20, byte(k+1), 0); len(l.injected) != max(0, k-10) {
			t.Fatalf("%d packets sent to %d next hops", len(l.injected), k+1)
		}
	}
	for _, c := range []struct {
		cfg                   GatewayConfig
		waiting, perNeighbour int
	}{
		{GatewayConfig{}, 1024, 3},
		{GatewayConfig{Waiting: 7, PerNeighbour: 5}, 7, 5},
		{GatewayConfig{Waiting: 1, PerNeighbour: 1}, 1, 1},
	} {
		l = newLab(t, &c.cfg)
		hop := func(k int) netip.Addr {
			return netip.AddrFrom16([16]byte{0xfd, 0, 3: 20, 13: 1, 14: byte(k >> 8), 15: byte(k)})
		}
		for k := range 3 * c.waiting {
			s := between(true, 1, 4)
			s.payload, s.dst = 10, hop(k)
			for n := range c.perNeighbour + 2 {
				want := frame.Consume
				if n >= c.perNeighbour {
					want = frame.Drop(frame.Unresolved)
				}
				if v, _ := l.in(l.i10, s.bytes(t)); v != want {
					t.Fatalf("%+v: packet %d for next hop %d: %v", c.cfg, n, k, v)
				}
			}
		}
		for k := range 3 * c.waiting {
			if got := l.i20.asked(hop(k)); got != (k >= 2*c.waiting) {
				t.Fatalf("%+v: next hop %d is asked for: %v", c.cfg, k, got)
			}
		}
		if st := l.i20.Stats(); st.Waiting != c.waiting {
			t.Errorf("%+v: %+v", c.cfg, st)
		}
		check.OK(t, l.i20.Close())
		check.True(t, l.g.queued() == 0, "closed, and packets wait")
	}
}

// An anycast gateway asks with the VTEP's own MAC, in nobody's name.
func TestAnycastAsks(t *testing.T) {
	l := newLab(t, nil)
	i30 := l.iface(l.vrf, 30, true)
	s := between(false, 1, 4)
	s.dst = at4(30, 4)
	l.in(l.i10, s.bytes(t))
	if q := l.injected[0].f.Bytes(); frame.MAC(q[6:]) != own || !bytes.Equal(q[28:32], make([]byte, 4)) {
		t.Errorf("% x", q)
	}
	check.Equal(t, "MAC", i30.MAC(), gate(30))
}

// A packet without a next hop tells control planes, waits, and leaves when the entry is set: with NoAsk, without a question
// on the wire.
func TestGatewayMiss(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, noAsk := range []bool{false, true} {
			l := newLab(t, nil)
			check.OK(t, l.i20.Close())
			var events []frame.Event
			table := check.Must(arp.NewTable(&arp.TableConfig{VNI: 20}))(t)
			r := check.Must(arp.NewResponder(&arp.Config{Table: table, Miss: true, Notify: func(e frame.Event) { events = append(events, e) }}))(t)
			cfg := l.i20.cfg
			cfg.Neighbours, cfg.NoAsk = r, noAsk
			l.i20 = check.Must(l.vrf.NewInterface(&cfg))(t)
			for range 3 {
				if v := l.verdict(l.i10, between(v6, 1, 5).bytes(t)); v != frame.Consume {
					t.Fatal(v)
				}
			}
			want := frame.Event{Kind: frame.EventNeighbourMiss, VNI: 20, IP: addrOf(v6, 20, 5), Dest: frame.NewDest(1, 0)}
			if len(events) != 1 || events[0] != want {
				t.Errorf("events %+v, want %+v", events, want)
			}
			questions := 1
			if noAsk {
				questions = 0
			}
			if len(l.injected) != questions {
				t.Errorf("%d frames were sent, want %d questions", len(l.injected), questions)
			}
			l.now++
			l.i20.Housekeep(l.now)
			if noAsk && len(l.injected) != 0 {
				t.Error("it asked later")
			}
			l.injected = nil
			check.OK(t, table.Set(want.IP, host(5), arp.Control, 0))
			if len(l.injected) != 3 || l.injected[0].vni != 20 {
				t.Fatalf("%d packets left, want 3", len(l.injected))
			}
			if b := l.injected[0].f.Bytes(); frame.MAC(b[:6]) != host(5) {
				t.Errorf("to %v", frame.MAC(b[:6]))
			}
		}
	}
}
