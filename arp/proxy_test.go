package arp

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// A site is one VTEP of the walk: host n at port 1, gateway, the other site behind peer 3.
func site(t *testing.T, v6 bool, own frame.MAC) *lab {
	l := newLab(t, nil, Config{Mode: Proxy, MAC: own})
	must(t, l.r.SetGateway(gw(v6, true)))
	return l
}

// learn is what the FDB of a site does with a frame.
func (l *lab) learn(from frame.Dest, b []byte) { l.fdb[frame.MAC(b[6:])] = from }

// The walk of the package's drawing, step by step: host 1 at A asks for host 3 at B, for
// the first time and again.
func TestProxyWalk(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		a, b := site(t, v6, ownMAC), site(t, v6, otherMAC)
		pass := func(l *lab, from frame.Dest, in []byte, verdict frame.Verdict, outcome Outcome) []byte {
			t.Helper()
			l.learn(from, in)
			v, br, f := l.give(from, in)
			if v != verdict || br != outcome {
				t.Fatalf("IPv6 %v: %v, %v; want %v, %v", v6, v, br, verdict, outcome)
			}
			return f.Bytes()
		}
		check := func(b []byte, want said) {
			t.Helper()
			if got := hear(t, b); got != want {
				t.Fatalf("\n%+v, want\n%+v", got, want)
			}
		}
		ask := question(v6, 1, 3)
		// A asks everybody, with its own MAC and host 1's address.
		onward := pass(a, port1, ask.bytes(t), frame.FloodAll, Relayed)
		want := ask
		want.src, want.senderMAC = ownMAC, ownMAC
		check(onward, want)
		// B notes that host 1 is at A, and asks on with its gateway's MAC.
		local := pass(b, peer3, onward, frame.FloodLocal, Relayed)
		want.src, want.senderMAC = gatewayMAC, gatewayMAC
		check(local, want)
		// Host 3 answers whom it heard.
		re := answer(v6, 3, 1)
		re.dst = gatewayMAC
		if !v6 {
			re.targetMAC = gatewayMAC
		}
		back := pass(b, port1, re.bytes(t), frame.Forward(peer3), Relayed)
		want = re
		want.src, want.senderMAC, want.dst = otherMAC, otherMAC, ownMAC
		if !v6 {
			want.targetMAC = ownMAC
		}
		check(back, want)
		// A notes that host 3 is at B, and tells host 1 that it is at the gateway.
		home := pass(a, peer3, back, frame.Forward(port1), Relayed)
		want.src, want.senderMAC, want.dst = gatewayMAC, gatewayMAC, mac(1)
		if !v6 {
			want.targetMAC = mac(1)
		}
		check(home, want)
		// What each end has stored: no MAC of the other site's hosts.
		for _, c := range []struct {
			l    *lab
			host byte
			mac  frame.MAC
			at   frame.Dest
		}{{a, 1, mac(1), port1}, {a, 3, otherMAC, peer3}, {b, 1, ownMAC, peer3}, {b, 3, mac(3), port1}} {
			if e, ok := c.l.table.Lookup(addr(v6, c.host)); !ok || e.MAC != c.mac || e.From != c.at {
				t.Errorf("IPv6 %v: host %d: %+v", v6, c.host, e)
			}
		}
		if _, ok := a.fdb[mac(3)]; ok || b.fdb[mac(1)] != 0 {
			t.Errorf("FDBs %v, %v", a.fdb, b.fdb)
		}
		// The second time A answers by itself.
		v, br, f := a.say(port1, ask)
		if v != frame.Reply || br != Answered {
			t.Fatalf("%v, %v", v, br)
		}
		checkAnswer(t, &ask, &f, gatewayMAC, true)
	}
}

// An answer to one of our own MACs goes nowhere when nobody waits for it, when who does is
// where it came from, or behind another peer (split horizon).
func TestProxyLost(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := site(t, v6, ownMAC)
		l.set(addr(v6, 1), otherMAC, 0, peer3)
		l.set(addr(v6, 2), mac(2), 0, port2)
		for _, c := range []struct {
			from frame.Dest
			to   byte
		}{{port1, 9}, {peer3, 1}, {peer4, 1}, {port2, 2}} {
			s := answer(v6, 3, c.to)
			s.dst = ownMAC
			if v, b, _ := l.say(c.from, s); v != frame.Consume || b != Lost {
				t.Errorf("IPv6 %v: from %v to %d: %v, %v", v6, c.from, c.to, v, b)
			}
		}
	}
}

// A question without an option cannot carry another MAC on.
func TestProxyNoOption(t *testing.T) {
	l := site(t, true, ownMAC)
	s := question(true, 1, 3)
	s.senderMAC = frame.MAC{}
	if v, b, _ := l.say(port1, s); v != frame.Consume || b != NoRoom {
		t.Errorf("%v, %v", v, b)
	}
}

// A probe is asked on as it is: it names nobody.
func TestProxyProbe(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := site(t, v6, ownMAC)
		if v, b, _ := l.say(port1, probe(v6, 1, 3)); v != frame.Continue || b != Probe {
			t.Errorf("%v, %v", v, b)
		}
		if v, b, _ := l.say(peer3, probe(v6, 1, 3)); v != frame.Continue || b != FromTunnel {
			t.Errorf("%v, %v", v, b)
		}
	}
}

// TestHides: in mode Proxy alone hosts' MACs stay, unless ExposeMACs says otherwise.
func TestHides(t *testing.T) {
	for _, expose := range []bool{false, true} {
		for m := range numModes {
			l := newLab(t, nil, Config{Mode: m, MAC: ownMAC, ExposeMACs: expose})
			if got, want := l.r.Hides(), m == Proxy && !expose; got != want {
				t.Errorf("%v, ExposeMACs %v: %v", m, expose, got)
			}
		}
	}
}
