package vectors

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// asked is a message from host 1 and what becomes of it.
type asked struct {
	id, name string
	only     int // 4 or 6: ARP or ND alone
	cfg      arp.Config
	off      bool // the mode; else that of cfg, or Suppress
	gateway  bool
	in       func(s *segment) message
	bytes    func(b []byte) []byte // what goes onto the wire instead
	fate     fate
	outcome  arp.Outcome
	answer   func(s *segment) message
	stranger bool      // host 1 is not in the table afterwards
	teaches  frame.MAC // where host 1 is in the table; zero: at its own MAC
}

// question has host 1 ask for another, differently from what hosts do.
func question(to byte, change func(s *segment, m *message)) func(s *segment) message {
	return func(s *segment) message {
		m := asks(s.v6, s.a.MAC, 1, to)
		if change != nil {
			change(s, &m)
		}
		return m
	}
}

// by is the answer that a target at mac gives to host 1.
func by(mac frame.MAC, n byte, flags uint8) func(s *segment) message {
	return func(s *segment) message {
		m := says(s.v6, mac, n, s.a.MAC, 1)
		m.flags |= flags
		return m
	}
}

// unasked is an announcement of host 1 in the form of an answer.
func unasked(s *segment) message {
	m := announces(false, s.a.MAC, 1)
	m.answer = true
	return m
}

// octet changes an octet of the packet, counted from behind the Ethernet header.
func octet(at int, x byte) func(b []byte) []byte {
	return func(b []byte) []byte { b[14+at] = x; return b }
}

// sum6 makes the checksum of an ICMPv6 message right again.
func sum6(b []byte) []byte {
	p := b[14:]
	p[42], p[43] = 0, 0
	pseudo := append(bytes.Clone(p[8:40]), 0, 0, p[4], p[5], 0, 0, 0, 58)
	binary.BigEndian.PutUint16(p[42:], ones(append(pseudo, p[40:]...)))
	return b
}

func suppressed() []asked {
	var (
		vrrp  = frame.MAC{0, 0, 0x5e, 0, 1, 7}
		other = frame.MAC{2, 0xcc, 0, 0, 0, 0xcc}
	)
	loopback := func(v6 bool) netip.Addr {
		return pick(v6, netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback())
	}
	group := func(v6 bool) netip.Addr {
		return pick(v6, netip.MustParseAddr("224.0.0.5"), netip.MustParseAddr("ff02::5"))
	}
	probe := func(n byte) func(s *segment) message {
		return func(s *segment) message { return probes(s.v6, s.a.MAC, n) }
	}
	announce := func(s *segment) message { return announces(s.v6, s.a.MAC, 1) }
	lie := func(_ *segment, m *message) { m.senderMAC = other }
	return []asked{
		// Row 0.
		{id: "6.gateway", name: "broadcast", gateway: true, in: question(gatewayHost, nil), outcome: arp.AnsweredGateway, answer: by(gwMAC, gatewayHost, naRouter)},
		{id: "6.gateway", name: "unicast", gateway: true, in: question(gatewayHost, func(_ *segment, m *message) { m.dst = gwMAC }), outcome: arp.AnsweredGateway, answer: by(gwMAC, gatewayHost, naRouter)},
		{id: "6.gateway", name: "defended against a probe, ARP", only: 4, gateway: true, in: probe(gatewayHost), outcome: arp.AnsweredGateway, stranger: true, answer: func(s *segment) message {
			m := says(false, gwMAC, gatewayHost, s.a.MAC, 0)
			m.target = netip.IPv4Unspecified()
			return m
		}},
		{id: "6.gateway", name: "defended against duplicate address detection", only: 6, gateway: true, in: probe(gatewayHost), outcome: arp.AnsweredGateway, stranger: true, answer: func(*segment) message {
			m := announces(true, gwMAC, gatewayHost) // to all, not solicited (RFC 4861, section 7.2.4)
			m.flags |= naRouter
			return m
		}},

		// Row 1.
		{id: "6.not-arp", name: "hardware type", only: 4, in: question(3, nil), bytes: octet(1, 6), fate: flooded, outcome: arp.Malformed, stranger: true},
		{id: "6.not-arp", name: "protocol type", only: 4, in: question(3, nil), bytes: octet(3, 6), fate: flooded, outcome: arp.Malformed, stranger: true},
		{id: "6.not-arp", name: "hardware length", only: 4, in: question(3, nil), bytes: octet(4, 8), fate: flooded, outcome: arp.Malformed, stranger: true},
		{id: "6.not-arp", name: "protocol length", only: 4, in: question(3, nil), bytes: octet(5, 16), fate: flooded, outcome: arp.Malformed, stranger: true},
		{id: "6.not-arp", name: "27 bytes", only: 4, in: question(3, nil), bytes: func(b []byte) []byte { return b[:14+27] }, fate: flooded, outcome: arp.Malformed, stranger: true},
		{id: "6.not-arp", name: "28 bytes are enough", only: 4, in: question(3, nil), bytes: func(b []byte) []byte { return b[:14+28] }, outcome: arp.Answered, answer: by(rmac(3), 3, 0)},
		{id: "6.no-host", name: "loopback", in: question(3, func(s *segment, m *message) { m.solicit(loopback(s.v6)) }), fate: flooded, outcome: arp.BadTarget, stranger: true},
		{id: "6.no-host", name: "multicast", in: question(3, func(s *segment, m *message) { m.solicit(group(s.v6)) }), fate: flooded, outcome: arp.BadTarget, stranger: true},

		// Row 3.
		{id: "6.unicast", name: "to a host behind the tunnel", in: question(3, func(_ *segment, m *message) { m.dst = rmac(3) }), fate: toFar, outcome: arp.Unicast},
		{id: "6.unicast", name: "to a local host", in: question(2, func(s *segment, m *message) { m.dst = s.b.MAC }), fate: localOnly, outcome: arp.Unicast},

		// Row 4.
		{id: "6.probe", name: "flooded", in: probe(3), fate: flooded, outcome: arp.Probe, stranger: true},
		{id: "6.probe", name: "not to tunnels", cfg: arp.Config{LocalOnly: true}, in: probe(3), fate: localOnly, outcome: arp.Probe, stranger: true},
		{id: "6.gratuitous", name: "request", only: 4, in: announce, fate: flooded, outcome: arp.Gratuitous},
		{id: "6.gratuitous", name: "request, not to tunnels", only: 4, cfg: arp.Config{LocalOnly: true}, in: announce, fate: localOnly, outcome: arp.Gratuitous},
		{id: "6.gratuitous", name: "reply", only: 4, in: unasked, fate: flooded, outcome: arp.NotQuestion},
		{id: "6.gratuitous", name: "reply, not to tunnels", only: 4, cfg: arp.Config{LocalOnly: true}, in: unasked, fate: localOnly, outcome: arp.NotQuestion},
		{id: "6.gratuitous", name: "unsolicited advertisement", only: 6, in: announce, fate: flooded, outcome: arp.NotQuestion},
		{id: "6.gratuitous", name: "unsolicited advertisement, not to tunnels", only: 6, cfg: arp.Config{LocalOnly: true}, in: announce, fate: localOnly, outcome: arp.NotQuestion},

		// Row 5.
		{id: "6.not-request", name: "an answer", in: func(s *segment) message { return says(s.v6, s.a.MAC, 1, rmac(3), 3) }, fate: toFar, outcome: arp.NotQuestion},

		// Row 6.
		{id: "6.remote", name: "with padding", in: question(3, nil), outcome: arp.Answered, answer: by(rmac(3), 3, 0)},
		{id: "6.local", name: "known", in: question(2, nil), fate: localOnly, outcome: arp.Local},
		{id: "6.no-fdb", name: "MAC nowhere", in: question(4, nil), fate: flooded, outcome: arp.UnknownMAC},
		{id: "6.unknown", name: "address unknown", in: question(5, nil), fate: flooded, outcome: arp.UnknownIP},

		// Row 7.
		{id: "6.spoofed", name: "question", in: question(3, lie), fate: flooded, outcome: arp.Spoofed, stranger: true},
		{id: "6.spoofed", name: "answer", in: func(s *segment) message {
			m := says(s.v6, s.a.MAC, 1, rmac(3), 3)
			m.senderMAC = other
			return m
		}, fate: toFar, outcome: arp.Spoofed, stranger: true},
		{id: "6.vrrp", name: "virtual MAC as sender", in: question(3, func(_ *segment, m *message) { m.senderMAC = vrrp }), outcome: arp.Answered, teaches: vrrp, answer: func(s *segment) message {
			m := says(s.v6, rmac(3), 3, vrrp, 1)
			if !s.v6 {
				m.dst = s.a.MAC // as the frame came
			}
			return m
		}},
		{id: "6.own-mac", name: "the target's MAC asks", in: question(6, nil), fate: flooded, outcome: arp.OwnMAC},

		// ND alone.
		{id: "6.nd-form", name: "hop limit 254", only: 6, in: question(3, func(_ *segment, m *message) { m.hopLimit = 254 }), fate: flooded, outcome: arp.Malformed, stranger: true},
		{id: "6.nd-form", name: "code 1", only: 6, in: question(3, func(_ *segment, m *message) { m.badCode = 1 }), fate: flooded, outcome: arp.Malformed, stranger: true},
		{id: "6.nd-form", name: "wrong checksum", only: 6, in: question(3, nil), bytes: func(b []byte) []byte { b[14+43] ^= 1; return b }, fate: flooded, outcome: arp.Malformed, stranger: true},
		{id: "6.nd-fragment", name: "the first", only: 6, in: question(3, nil), bytes: func(b []byte) []byte {
			f := append(bytes.Clone(b[:54]), 58, 0, 0, 1, 0, 0, 0, 9) // more to come
			f[14+6], f[14+5] = 44, f[14+5]+8
			return append(f, b[54:]...)
		}, fate: flooded, outcome: arp.Malformed, stranger: true},
		{id: "6.nd-options", name: "length 0", only: 6, in: question(3, nil), bytes: func(b []byte) []byte { b[14+65] = 0; return sum6(b) }, fate: flooded, outcome: arp.Malformed, stranger: true},
		{id: "6.nd-options", name: "past the end", only: 6, in: question(3, nil), bytes: func(b []byte) []byte { b[14+65] = 2; return sum6(b) }, fate: flooded, outcome: arp.Malformed, stranger: true},
		{id: "6.nd-options", name: "another one first", only: 6, in: question(3, nil), bytes: func(b []byte) []byte {
			nonce := []byte{14, 1, 1, 2, 3, 4, 5, 6} // RFC 3971, section 5.3.2
			b = append(append(bytes.Clone(b[:14+64]), nonce...), b[14+64:]...)
			b[14+5] += 8
			return sum6(b)
		}, outcome: arp.Answered, answer: by(rmac(3), 3, 0)},
		{id: "6.nd-source", name: "without an option", only: 6, in: question(3, func(_ *segment, m *message) { m.senderMAC = frame.MAC{} }), outcome: arp.Answered, answer: by(rmac(3), 3, 0), stranger: true},
		{id: "6.nd-teaches", name: "an advertisement without an option", only: 6, in: func(s *segment) message {
			m := says(true, s.a.MAC, 1, rmac(3), 3)
			m.senderMAC = frame.MAC{}
			return m
		}, fate: toFar, outcome: arp.NotQuestion, stranger: true},

		// Modes.
		{id: "6.mode", name: "off", off: true, in: question(3, nil), fate: flooded, outcome: arp.ModeOff},
		{id: "6.mode", name: "proxy", cfg: arp.Config{Mode: arp.Proxy, MAC: ownMAC}, gateway: true, in: question(3, nil), outcome: arp.Answered, answer: by(gwMAC, 3, naRouter)},
	}
}

func askedRows() (rows []row) {
	for _, c := range suppressed() {
		if c.cfg.Mode == arp.Off && !c.off {
			c.cfg.Mode = arp.Suppress
		}
		rows = append(rows, each(c.id, c.name, c.only, func(l *lab, v6 bool, vlan uint16) {
			s := l.neighbours(v6, vlan, arp.TableConfig{}, c.cfg, nil)
			if c.gateway {
				l.must(s.r.SetGateway(s.gateway(true)))
			}
			l.must(s.r.Table().Set(inner(v6, 6), s.a.MAC, arp.Control, 0))
			b := c.in(s).bytes()
			if c.bytes != nil {
				b = c.bytes(b)
			}
			s.sends(b, c.outcome)
			var answer []byte
			if c.answer != nil {
				answer = c.answer(s).bare()
			}
			s.wantFate(b, c.fate, answer)
			switch {
			case c.stranger:
				s.wantEntry(1, frame.MAC{})
			case !c.teaches.IsZero():
				s.wantEntry(1, c.teaches)
			default:
				s.wantEntry(1, s.a.MAC)
			}
		})...)
	}
	return rows
}

// tunnelRows are questions out of the tunnel, of host 3 behind far end f: row 2, and row 0
// as far as it is about tunnels.
func tunnelRows() (rows []row) {
	for _, c := range []struct {
		id, name string
		gateway  bool
		anycast  bool
		to       byte
		outcome  arp.Outcome
		answered bool
	}{
		{id: "6.tunnel", name: "for a local host", to: 2, outcome: arp.FromTunnel},
		{id: "6.tunnel", name: "for a host behind another peer", to: 8, outcome: arp.FromTunnel},
		{id: "6.tunnel", name: "for nobody known", to: 5, outcome: arp.FromTunnel},
		{id: "6.gateway-tunnel", name: "asked through the tunnel", gateway: true, to: gatewayHost, outcome: arp.AnsweredGateway, answered: true},
		{id: "6.gateway-tunnel", name: "anycast, asked through the tunnel", gateway: true, anycast: true, to: gatewayHost, outcome: arp.RemoteAnycast},
	} {
		rows = append(rows, each(c.id, c.name, 0, func(l *lab, v6 bool, vlan uint16) {
			s := l.neighbours(v6, vlan, arp.TableConfig{}, arp.Config{Mode: arp.Suppress}, nil)
			if c.gateway {
				l.must(s.r.SetGateway(s.gateway(c.anycast)))
			}
			s.g.send(vx(vni, announces(v6, rmac(8), 8).bytes()))
			l.forget()
			q := asks(v6, rmac(3), 3, c.to).bytes()
			s.counts(c.outcome, func() { s.f.send(vx(vni, q)) })
			s.g.want()
			if c.answered {
				m := says(v6, gwMAC, gatewayHost, rmac(3), 3)
				m.flags |= naRouter
				if !v6 {
					m.flags = 0
				}
				s.f.want(vx(vni, m.bare()))
				l.quiet()
			} else {
				s.f.want()
				s.a.Want(s.tagged(q))
				s.b.Want(q)
			}
			l.drops(nil)
		})...)
	}
	rows = append(rows, each("6.gateway-tunnel", "anycast, not asked on by a hub", 0, func(l *lab, v6 bool, vlan uint16) {
		s := l.neighbours(v6, vlan, arp.TableConfig{}, arp.Config{Mode: arp.Suppress}, nil)
		l.must(s.r.SetGateway(s.gateway(true)))
		l.must(l.tun.Configure(vswitch.AttachConfig{Hub: true}))
		q := asks(v6, rmac(3), 3, gatewayHost).bytes()
		s.counts(arp.RemoteAnycast, func() { s.f.send(vx(vni, q)) })
		s.a.Want(s.tagged(q))
		s.b.Want(q)
		l.quiet()
		q = asks(v6, rmac(3), 3, 5).bytes() // as it does others
		l.passes(s.f, q, s.g)
	})...)
	return append(rows, each("6.tunnel", "the sender is noted", 0, func(l *lab, v6 bool, vlan uint16) {
		s := l.neighbours(v6, vlan, arp.TableConfig{}, arp.Config{Mode: arp.Suppress}, nil)
		s.g.send(vx(vni, asks(v6, rmac(7), 7, 2).bytes()))
		l.forget()
		s.wantEntry(7, rmac(7))
		q := asks(v6, s.a.MAC, 1, 7).bytes()
		s.asks(q, arp.Answered, answered, by(rmac(7), 7, 0)(s).bare())
	})...)
}
