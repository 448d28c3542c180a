package vectors

import (
	"github.com/vxswitch/vxswitch/arp"
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
		s.f.send(vx(vni, q))
		s.g.want(vx(vni, q))
	})...)
	return append(rows, each("6.tunnel", "the sender is noted", 0, func(l *lab, v6 bool, vlan uint16) {
		s := l.neighbours(v6, vlan, arp.TableConfig{}, arp.Config{Mode: arp.Suppress}, nil)
		s.g.send(vx(vni, asks(v6, rmac(7), 7, 2).bytes()))
		l.forget()
		s.wantEntry(7, rmac(7))
		q := asks(v6, s.a.MAC, 1, 7).bytes()
		s.sends(q, arp.Answered)
		s.wantFate(q, answered, by(rmac(7), 7, 0)(s).bare())
	})...)
}
