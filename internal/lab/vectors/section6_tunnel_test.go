package vectors

import (
	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// tunnelRows are questions out of the tunnel, of host 3 behind far end f: row 2, and row 0
// as far as it is about tunnels.
func tunnelRows() (rows []row) {
	for _, c := range []struct {
		id, name string
		gateway  bool
		anycast  bool
		to       byte
		branch   arp.Branch
		answered bool
	}{
		{id: "6.tunnel", name: "for a local host", to: 2, branch: arp.FromTunnel},
		{id: "6.tunnel", name: "for a host behind another peer", to: 8, branch: arp.FromTunnel},
		{id: "6.tunnel", name: "for nobody known", to: 5, branch: arp.FromTunnel},
		{id: "6.gateway-tunnel", name: "asked through the tunnel", gateway: true, to: gatewayHost, branch: arp.AnsweredGateway, answered: true},
		{id: "6.gateway-tunnel", name: "anycast, asked through the tunnel", gateway: true, anycast: true, to: gatewayHost, branch: arp.RemoteAnycast},
	} {
		rows = append(rows, each(c.id, c.name, 0, func(l *lab, v6 bool, vlan uint16) {
			s := l.neighbours(v6, vlan, arp.TableConfig{}, arp.Config{Mode: arp.Suppress}, nil)
			if c.gateway {
				l.must(s.r.SetGateway(s.gateway(c.anycast)))
			}
			s.g.send(vx(vni, announces(v6, rmac(8), 8).bytes()))
			s.forget()
			q := asks(v6, rmac(3), 3, c.to).bytes()
			s.counts(c.branch, func() { s.f.send(vx(vni, q)) })
			s.g.want()
			if c.answered {
				m := says(v6, gwMAC, gatewayHost, rmac(3), 3)
				m.flags |= naRouter
				if !v6 {
					m.flags = 0
				}
				s.f.want(vx(vni, m.bare()))
				s.a.Want()
				s.b.Want()
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
		s.f.want()
		s.g.want()
		s.b.Want(q)
		q = asks(v6, rmac(3), 3, 5).bytes() // as it does others
		s.f.send(vx(vni, q))
		s.g.want(vx(vni, q))
	})...)
	return append(rows, each("6.tunnel", "the sender is noted", 0, func(l *lab, v6 bool, vlan uint16) {
		s := l.neighbours(v6, vlan, arp.TableConfig{}, arp.Config{Mode: arp.Suppress}, nil)
		s.g.send(vx(vni, asks(v6, rmac(7), 7, 2).bytes()))
		s.forget()
		s.wantEntry(7, rmac(7))
		q := asks(v6, s.a.MAC, 1, 7).bytes()
		s.sends(q, arp.Answered)
		s.wantFate(q, answered, by(rmac(7), 7, 0)(s).bare())
	})...)
}

// accessRows are a port in mode Access: whatever is asked there, the gateway's MAC is the
// answer.
func accessRows() (rows []row) {
	calico := frame.MAC{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}
	for _, c := range []struct {
		id, name string
		only     int
		mac      frame.MAC // set for the port; zero: the default
		in       func(s *segment) message
		fate     fate
		branch   arp.Branch
	}{
		{id: "6.access", name: "for a host behind the tunnel", in: question(3, nil), branch: arp.Answered},
		{id: "6.access", name: "for a local host", in: question(2, nil), branch: arp.Answered},
		{id: "6.access", name: "for nobody known", in: question(77, nil), branch: arp.Answered},
		{id: "6.access", name: "for 169.254.1.1", only: 4, in: question(0, func(_ *segment, m *message) { m.target = linkLocal }), branch: arp.Answered},
		{id: "6.access", name: "unicast", in: question(3, func(_ *segment, m *message) { m.dst = calico }), branch: arp.Answered},
		{id: "6.access", name: "another MAC", mac: gwMAC, in: question(3, nil), branch: arp.Answered},
		{id: "6.access-quiet", name: "probe", in: func(s *segment) message { return probes(s.v6, s.a.MAC, 1) }, fate: consumed, branch: arp.Probe},
		{id: "6.access-quiet", name: "gratuitous", only: 4, in: func(s *segment) message { return announces(false, s.a.MAC, 1) }, fate: consumed, branch: arp.Gratuitous},
		{id: "6.access-quiet", name: "unsolicited", only: 6, in: func(s *segment) message { return announces(true, s.a.MAC, 1) }, fate: consumed, branch: arp.Forbidden},
	} {
		rows = append(rows, each(c.id, c.name, c.only, func(l *lab, v6 bool, vlan uint16) {
			s := l.neighbours(v6, vlan, arp.TableConfig{}, arp.Config{Mode: arp.Suppress, AccessMAC: c.mac}, nil)
			l.access(s)
			m := c.in(s)
			s.sends(m.bytes(), c.branch)
			var answer []byte
			if c.fate == answered {
				mac := calico
				if !c.mac.IsZero() {
					mac = c.mac
				}
				a := by(mac, 0, naRouter)(s)
				a.sender = m.target
				if v6 {
					a.target = m.target
				}
				answer = a.bare()
			}
			s.wantFate(m.bytes(), c.fate, answer)
			// The other port is of the segment's mode.
			q := asks(v6, s.b.MAC, 2, 3)
			s.counts(arp.Answered, func() { s.b.Send(q.bytes()) })
			s.b.Want(says(v6, rmac(3), 3, s.b.MAC, 2).bare())
			s.a.Want()
		})...)
	}
	return rows
}
