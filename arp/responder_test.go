package arp

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

var (
	ownMAC     = frame.MAC{2, 0xff, 0, 0, 0, 0xa}
	gatewayMAC = frame.MAC{2, 0xff, 0, 0, 0, 0xb}
	otherMAC   = frame.MAC{2, 0xff, 0, 0, 0, 0xc} // of another VTEP
	vrrp4      = frame.MAC{0, 0, 0x5e, 0, 1, 7}
	vrrp6      = frame.MAC{0, 0, 0x5e, 0, 2, 7}
)

const gatewayHost = 254

// In the tests host 1 is at port 1 and asks, 2 is at port 2, 3 behind the tunnel; 4 is in
// the table only, 5 in neither, 6 is frozen.
func (l *lab) populate(v6 bool) {
	l.set(addr(v6, 2), mac(2), 0, port2)
	l.set(addr(v6, 3), mac(3), 0, peer3)
	must(l.t, l.table.Set(addr(v6, 4), mac(4), Control, 0))
	l.fdb[mac(1)] = port1
}

// A step of the decision table, for both families.
type step struct {
	name    string
	mode    Mode
	gateway *Gateway // nil: none
	local   bool     // Config.LocalOnly
	from    frame.Dest
	in      func(v6 bool) said
	bytes   func(v6 bool, b []byte) []byte // changes them
	only    int                            // 4 or 6, if not both
	verdict frame.Verdict
	outcome Outcome
	mac     frame.MAC // that the answer has
	learned byte      // host in the table afterwards, at its own MAC, that was not before
	not     byte      // host not in the table
}

func q(from, to byte) func(bool) said { return func(v6 bool) said { return question(v6, from, to) } }

func edit(s func(bool) said, f func(v6 bool, s *said)) func(bool) said {
	return func(v6 bool) said {
		m := s(v6)
		f(v6, &m)
		return m
	}
}

func gw(v6 bool, anycast bool) *Gateway {
	return &Gateway{IPs: []netip.Addr{addr(v6, gatewayHost)}, MAC: gatewayMAC, Anycast: anycast}
}

// Every outcome of the decision table, ARP and ND.
func TestDecide(t *testing.T) {
	unicast := func(to byte) func(bool, *said) { return func(_ bool, s *said) { s.dst = mac(to) } }
	has, one := &Gateway{}, &Gateway{Anycast: true} // filled in for each family
	for _, s := range []step{
		{name: "row 0: the gateway", gateway: has, mode: Suppress, from: port1, in: q(1, gatewayHost), verdict: frame.Reply, outcome: AnsweredGateway, mac: gatewayMAC, learned: 1},
		{name: "row 0: unicast", gateway: has, mode: Suppress, from: port1, in: edit(q(1, gatewayHost), func(_ bool, s *said) { s.dst = gatewayMAC }), verdict: frame.Reply, outcome: AnsweredGateway, mac: gatewayMAC},
		{name: "row 0: a probe for it", gateway: has, mode: Suppress, from: port1, in: func(v6 bool) said { return probe(v6, 1, gatewayHost) }, verdict: frame.Reply, outcome: AnsweredGateway, mac: gatewayMAC},
		{name: "row 0: through the tunnel", gateway: has, mode: Suppress, from: peer3, in: q(3, gatewayHost), verdict: frame.Reply, outcome: AnsweredGateway, mac: gatewayMAC},
		{name: "row 0: anycast, here", gateway: one, mode: Suppress, from: port1, in: q(1, gatewayHost), verdict: frame.Reply, outcome: AnsweredGateway, mac: gatewayMAC},
		{name: "row 0: anycast, through the tunnel", gateway: one, mode: Suppress, from: peer3, in: q(3, gatewayHost), verdict: frame.FloodLocal, outcome: RemoteAnycast},
		{name: "row 0: in mode off", gateway: has, mode: Off, from: port1, in: q(1, gatewayHost), verdict: frame.Reply, outcome: AnsweredGateway, mac: gatewayMAC},
		{name: "row 0: somebody announces it", gateway: has, mode: Suppress, from: port1, in: edit(func(v6 bool) said { return announcement(v6, 1) }, func(v6 bool, s *said) {
			s.sender, s.target = addr(v6, gatewayHost), addr(v6, gatewayHost)
		}), only: 4, verdict: frame.Reply, outcome: AnsweredGateway, mac: gatewayMAC, not: gatewayHost},
		{name: "row 0: an advertisement of it", gateway: has, mode: Suppress, from: port1, in: edit(func(v6 bool) said { return announcement(v6, 1) }, func(v6 bool, s *said) {
			s.sender, s.target = addr(v6, gatewayHost), addr(v6, gatewayHost)
		}), only: 6, verdict: frame.Continue, outcome: NotQuestion, not: gatewayHost},

		{name: "row 1: hardware type", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return patch(b, 15, 6) }, only: 4, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: protocol type", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return patch(b, 16, 9) }, only: 4, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: hardware length", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return patch(b, 18, 8) }, only: 4, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: hardware length 255", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return patch(b, 18, 255) }, only: 4, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: protocol length", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return patch(b, 19, 0) }, only: 4, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: operation", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return patch(b, 21, 3) }, only: 4, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: short", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return b[:41] }, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: header only", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return b[:14] }, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: hop limit 254", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return patch(b, 21, 254) }, only: 6, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: code", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return patch(b, 55, 1) }, only: 6, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: checksum", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { b[57] ^= 1; return b }, only: 6, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: option of length 0", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return patch(b, 79, 0) }, only: 6, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: option past the end", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return patch(b, 79, 2) }, only: 6, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: fragment", mode: Suppress, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return fragmented(b) }, only: 6, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: to another solicited-node address", mode: Suppress, from: port1, in: edit(q(1, 3), func(_ bool, s *said) { s.to, s.dst = solicited(ip6(9)) }), only: 6, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: a probe with a MAC", mode: Suppress, from: port1, in: edit(func(v6 bool) said { return probe(v6, 1, 3) }, func(_ bool, s *said) { s.senderMAC = mac(1) }), only: 6, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: solicited advertisement to all", mode: Suppress, from: port1, in: edit(func(v6 bool) said { return announcement(v6, 1) }, func(_ bool, s *said) { s.flags = 0x60 }), only: 6, verdict: frame.Continue, outcome: Malformed, not: 1},
		{name: "row 1: loopback", mode: Suppress, from: port1, in: edit(q(1, 3), func(v6 bool, s *said) {
			s.target = netip.MustParseAddr("127.0.0.1")
			if v6 {
				s.target = netip.IPv6Loopback()
				s.to, s.dst = solicited(s.target)
			}
		}), verdict: frame.Continue, outcome: BadTarget, not: 1},
		{name: "row 1: multicast", mode: Suppress, from: port1, in: edit(q(1, 3), func(v6 bool, s *said) {
			s.target = netip.MustParseAddr("224.0.0.1")
			if v6 {
				s.target = toAll
				s.to, s.dst = solicited(s.target)
			}
		}), verdict: frame.Continue, outcome: BadTarget, not: 1},
		{name: "row 1: broadcast", mode: Suppress, from: port1, in: edit(q(1, 3), func(_ bool, s *said) { s.target = netip.MustParseAddr("255.255.255.255") }), only: 4, verdict: frame.Continue, outcome: BadTarget, not: 1},
		{name: "row 1: 0.0.0.0", mode: Suppress, from: port1, in: edit(q(1, 3), func(v6 bool, s *said) {
			s.target = nobody(v6)
			if v6 {
				s.to, s.dst = solicited(s.target)
			}
		}), verdict: frame.Continue, outcome: BadTarget, not: 1},
		{name: "row 1: group MAC as sender", mode: Suppress, from: port1, in: edit(q(1, 3), func(_ bool, s *said) { s.senderMAC = toAllMAC }), verdict: frame.Continue, outcome: BadSender, not: 1},
		{name: "row 1: zero MAC as sender", mode: Suppress, from: port1, in: edit(q(1, 3), func(_ bool, s *said) { s.senderMAC = frame.MAC{} }), only: 4, verdict: frame.Continue, outcome: BadSender, not: 1},
		{name: "row 1: multicast sender", mode: Suppress, from: port1, in: edit(q(1, 3), func(v6 bool, s *said) {
			s.sender = netip.MustParseAddr("224.0.0.1")
			if v6 {
				s.sender = toAll
			}
		}), verdict: frame.Continue, outcome: BadSender},
		{name: "row 1: broadcast sender", mode: Suppress, from: port1, in: edit(q(1, 3), func(_ bool, s *said) { s.sender = netip.MustParseAddr("255.255.255.255") }), only: 4, verdict: frame.Continue, outcome: BadSender},
		{name: "row 1: an answer from 0.0.0.0", mode: Suppress, from: port1, in: edit(func(v6 bool) said { return answer(v6, 1, 3) }, func(v6 bool, s *said) { s.sender = nobody(v6) }), only: 4, verdict: frame.Continue, outcome: BadSender},

		{name: "row 2: from a tunnel", mode: Suppress, from: peer3, in: q(3, 2), verdict: frame.Continue, outcome: FromTunnel},
		{name: "row 2: the sender is noted", mode: Suppress, from: peer4, in: q(7, 2), verdict: frame.Continue, outcome: FromTunnel, learned: 7},
		{name: "row 3: unicast", mode: Suppress, from: port1, in: edit(q(1, 3), unicast(3)), verdict: frame.Continue, outcome: Unicast, learned: 1},
		{name: "row 4: probe", mode: Suppress, from: port1, in: func(v6 bool) said { return probe(v6, 1, 3) }, verdict: frame.Continue, outcome: Probe, not: 1},
		{name: "row 4: probe, not to tunnels", mode: Suppress, local: true, from: port1, in: func(v6 bool) said { return probe(v6, 1, 3) }, verdict: frame.FloodLocal, outcome: Probe},
		{name: "row 4: gratuitous request", mode: Suppress, from: port1, in: func(v6 bool) said { return announcement(v6, 1) }, only: 4, verdict: frame.Continue, outcome: Gratuitous, learned: 1},
		{name: "row 4: unsolicited advertisement", mode: Suppress, from: port1, in: func(v6 bool) said { return announcement(v6, 1) }, only: 6, verdict: frame.Continue, outcome: NotQuestion, learned: 1},
		{name: "row 4: gratuitous, not to tunnels", mode: Suppress, local: true, from: port1, in: func(v6 bool) said { return announcement(v6, 1) }, only: 4, verdict: frame.FloodLocal, outcome: Gratuitous, learned: 1},
		{name: "row 4: unsolicited, not to tunnels", mode: Suppress, local: true, from: port1, in: func(v6 bool) said { return announcement(v6, 1) }, only: 6, verdict: frame.FloodLocal, outcome: NotQuestion, learned: 1},
		{name: "row 5: an answer", mode: Suppress, from: port1, in: func(v6 bool) said { return answer(v6, 1, 3) }, verdict: frame.Continue, outcome: NotQuestion, learned: 1},
		{name: "row 5: an advertisement without an option", mode: Suppress, from: port1, in: edit(func(v6 bool) said { return answer(v6, 1, 3) }, func(_ bool, s *said) { s.senderMAC = frame.MAC{} }), only: 6, verdict: frame.Continue, outcome: NotQuestion, not: 1},
		{name: "row 6: behind a tunnel", mode: Suppress, from: port1, in: q(1, 3), verdict: frame.Reply, outcome: Answered, mac: mac(3), learned: 1},
		{name: "row 6: behind another port", mode: Suppress, from: port1, in: q(1, 2), verdict: frame.FloodLocal, outcome: Local, learned: 1},
		{name: "row 6: no FDB entry", mode: Suppress, from: port1, in: q(1, 4), verdict: frame.Continue, outcome: UnknownMAC, learned: 1},
		{name: "row 6: unknown", mode: Suppress, from: port1, in: q(1, 5), verdict: frame.Continue, outcome: UnknownIP, learned: 1},
		{name: "row 7: spoofed", mode: Suppress, from: port1, in: edit(q(1, 3), func(_ bool, s *said) { s.senderMAC = mac(9) }), verdict: frame.Continue, outcome: Spoofed, not: 1},
		{name: "row 7: a spoofed answer", mode: Suppress, from: port1, in: edit(func(v6 bool) said { return answer(v6, 1, 3) }, func(_ bool, s *said) { s.senderMAC = mac(9) }), verdict: frame.Continue, outcome: Spoofed, not: 1},
		{name: "row 7: its own MAC", mode: Suppress, from: port1, in: edit(q(1, 3), func(_ bool, s *said) { s.src, s.senderMAC = mac(3), mac(3) }), verdict: frame.Continue, outcome: OwnMAC},
		{name: "row 7: VRRP", mode: Suppress, from: port1, in: edit(q(1, 3), func(v6 bool, s *said) {
			s.senderMAC = vrrp4
			if v6 {
				s.senderMAC = vrrp6
			}
		}), verdict: frame.Reply, outcome: Answered, mac: mac(3)},
		{name: "without an option", mode: Suppress, from: port1, in: edit(q(1, 3), func(_ bool, s *said) { s.senderMAC = frame.MAC{} }), only: 6, verdict: frame.Reply, outcome: Answered, mac: mac(3), not: 1},

		{name: "off", mode: Off, from: port1, in: q(1, 3), verdict: frame.Continue, outcome: ModeOff, learned: 1},
		{name: "off: a spoofed announcement", mode: Off, local: true, from: port1, in: edit(func(v6 bool) said { return announcement(v6, 1) }, func(_ bool, s *said) { s.senderMAC = mac(9) }), verdict: frame.Continue, outcome: Spoofed, not: 1},

		{name: "proxy: known", gateway: has, mode: Proxy, from: port1, in: q(1, 3), verdict: frame.Reply, outcome: Answered, mac: gatewayMAC, learned: 1},
		{name: "proxy: is the gateway still there?", gateway: has, mode: Proxy, from: port1, in: edit(q(1, 3), func(_ bool, s *said) { s.dst = gatewayMAC }), verdict: frame.Reply, outcome: Answered, mac: gatewayMAC},
		{name: "proxy: and what it stands for is unknown", gateway: has, mode: Proxy, from: port1, in: edit(q(1, 5), func(_ bool, s *said) { s.dst = gatewayMAC }), verdict: frame.Consume, outcome: UnknownIP},
		{name: "proxy: and what it stands for is local", gateway: has, mode: Proxy, from: port1, in: edit(q(1, 2), func(_ bool, s *said) { s.dst = gatewayMAC }), verdict: frame.Reply, outcome: Answered, mac: gatewayMAC},
		{name: "proxy: unicast to another", gateway: has, mode: Proxy, from: port1, in: edit(q(1, 3), unicast(3)), verdict: frame.Continue, outcome: Unicast},
		{name: "proxy: local", gateway: has, mode: Proxy, from: port1, in: q(1, 2), verdict: frame.FloodLocal, outcome: Local},
		{name: "proxy: without a gateway", mode: Proxy, from: port1, in: q(1, 3), verdict: frame.Reply, outcome: Answered, mac: mac(3)},

		{name: "access: anybody", mode: Access, from: port1, in: q(1, 77), verdict: frame.Reply, outcome: Answered, mac: DefaultAccessMAC, learned: 1},
		{name: "access: a neighbour", mode: Access, from: port1, in: q(1, 2), verdict: frame.Reply, outcome: Answered, mac: DefaultAccessMAC},
		{name: "access: unicast", mode: Access, from: port1, in: edit(q(1, 77), func(_ bool, s *said) { s.dst = DefaultAccessMAC }), verdict: frame.Reply, outcome: Answered, mac: DefaultAccessMAC},
		{name: "access: probe", mode: Access, from: port1, in: func(v6 bool) said { return probe(v6, 1, 77) }, verdict: frame.Consume, outcome: Probe},
		{name: "access: announcement", mode: Access, from: port1, in: func(v6 bool) said { return announcement(v6, 1) }, only: 4, verdict: frame.Consume, outcome: Gratuitous, learned: 1},
		{name: "access: unsolicited advertisement", mode: Access, from: port1, in: func(v6 bool) said { return announcement(v6, 1) }, only: 6, verdict: frame.Drop(frame.NotGateway), outcome: Forbidden, learned: 1},
		{name: "access: malformed", mode: Access, from: port1, in: q(1, 3), bytes: func(_ bool, b []byte) []byte { return b[:41] }, verdict: frame.Drop(frame.NotGateway), outcome: Malformed},
		{name: "access: spoofed", mode: Access, from: port1, in: edit(q(1, 3), func(_ bool, s *said) { s.senderMAC = mac(9) }), verdict: frame.Drop(frame.NotGateway), outcome: Forbidden, not: 1},
		{name: "access: an answer to the gateway", mode: Access, from: port1, in: edit(func(v6 bool) said { return answer(v6, 1, 3) }, func(_ bool, s *said) { s.dst = DefaultAccessMAC }), verdict: frame.Consume, outcome: NotQuestion, learned: 1},
		{name: "access: an answer to another", mode: Access, from: port1, in: func(v6 bool) said { return answer(v6, 1, 3) }, verdict: frame.Drop(frame.NotGateway), outcome: Forbidden, learned: 1},
	} {
		for _, v6 := range []bool{false, true} {
			if s.only == 4 && v6 || s.only == 6 && !v6 {
				continue
			}
			family := "ARP"
			if v6 {
				family = "ND"
			}
			t.Run(strings.Join([]string{family, s.name}, "/"), func(t *testing.T) { s.run(t, v6) })
		}
	}
}

func (s *step) run(t *testing.T, v6 bool) {
	l := newLab(t, nil, Config{Mode: s.mode, MAC: ownMAC, LocalOnly: s.local})
	l.populate(v6)
	if s.gateway != nil {
		must(t, l.r.SetGateway(gw(v6, s.gateway.Anycast)))
	}
	m := s.in(v6)
	in := m.bytes(t)
	if s.bytes != nil {
		in = s.bytes(v6, in)
	}
	v, b, f := l.give(s.from, in)
	if v != s.verdict || b != s.outcome {
		t.Fatalf("%v, %v; want %v, %v", v, b, s.verdict, s.outcome)
	}
	if v != frame.Reply {
		if !bytes.Equal(f.Bytes(), in) {
			t.Errorf("changed:\n% x\n% x", in, f.Bytes())
		}
	} else {
		checkAnswer(t, &m, &f, s.mac, s.outcome == AnsweredGateway || s.mode == Proxy && s.gateway != nil || s.mode == Access)
	}
	if s.learned != 0 {
		if e, ok := l.table.Lookup(addr(v6, s.learned)); !ok || e.MAC != mac(s.learned) || e.Origin != Snooped || e.From != s.from {
			t.Errorf("learned %+v, %v", e, ok)
		}
	}
	if s.not != 0 {
		if e, ok := l.table.Lookup(addr(v6, s.not)); ok {
			t.Errorf("learned %+v", e)
		}
	}
}

// checkAnswer compares f with what RFC 826 or RFC 4861 has a target at mac say.
func checkAnswer(t *testing.T, m *said, f *frame.Frame, at frame.MAC, router bool) {
	t.Helper()
	asker := m.senderMAC
	if asker.IsZero() {
		asker = m.src
	}
	want := said{kind: isAt, src: at, dst: m.src, sender: m.target, senderMAC: at, target: m.sender, targetMAC: m.senderMAC}
	if m.v6() {
		want = said{kind: isAt, src: at, dst: asker, sender: m.target, senderMAC: at, target: m.target, to: m.sender, flags: 0x60}
		if m.sender.IsUnspecified() {
			want.to, want.dst, want.flags = toAll, toAllMAC, 0x20
		}
		if router {
			want.flags |= 0x80
		}
	}
	if got := hear(t, f.Bytes()); got != want {
		t.Errorf("answered\n%+v, want\n%+v", got, want)
	}
	if f.Hash != 0 || f.GSO != (frame.GSO{}) {
		t.Errorf("hash %d, %+v", f.Hash, f.GSO)
	}
}

// fragmented puts a fragment header in front of a whole ICMPv6 message (RFC 8200, section
// 4.5).
func fragmented(b []byte) []byte {
	f := append(bytes.Clone(b[:54]), 58, 0, 0, 0, 0, 0, 0, 1)
	f = append(f, b[54:]...)
	f[20] = 44
	f[19] += 8
	return f
}
