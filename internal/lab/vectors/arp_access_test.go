package vectors

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var linkLocal = netip.MustParseAddr("169.254.1.1")

// access puts port a into mode Access.
func (l *lab) access(s *segment) {
	l.T.Helper()
	r, err := s.r.With(arp.Access)
	l.must(err)
	l.must(s.a.At.Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Neighbour: r, Ingress: arp.OnlyIP{}}}))
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
		outcome  arp.Outcome
	}{
		{id: "6.access", name: "for a host behind the tunnel", in: question(3, nil), outcome: arp.Answered},
		{id: "6.access", name: "for a local host", in: question(2, nil), outcome: arp.Answered},
		{id: "6.access", name: "for nobody known", in: question(77, nil), outcome: arp.Answered},
		{id: "6.access", name: "for 169.254.1.1", only: 4, in: question(0, func(_ *segment, m *message) { m.target = linkLocal }), outcome: arp.Answered},
		{id: "6.access", name: "unicast", in: question(3, func(_ *segment, m *message) { m.dst = calico }), outcome: arp.Answered},
		{id: "6.access", name: "another MAC", mac: gwMAC, in: question(3, nil), outcome: arp.Answered},
		{id: "6.access-quiet", name: "probe", in: func(s *segment) message { return probes(s.v6, s.a.MAC, 1) }, fate: consumed, outcome: arp.Probe},
		{id: "6.access-quiet", name: "gratuitous", only: 4, in: func(s *segment) message { return announces(false, s.a.MAC, 1) }, fate: consumed, outcome: arp.Gratuitous},
		{id: "6.access-quiet", name: "an answer to nobody", only: 4, in: func(s *segment) message {
			m := announces(false, s.a.MAC, 1)
			m.answer = true
			return m
		}, fate: confined, outcome: arp.Forbidden},
		{id: "6.access-quiet", name: "a spoofed question", in: question(3, func(_ *segment, m *message) { m.senderMAC = rmac(99) }), fate: confined, outcome: arp.Forbidden},
		{id: "6.access-quiet", name: "hop limit 254", only: 6, in: question(3, func(_ *segment, m *message) { m.hopLimit = 254 }), fate: confined, outcome: arp.Malformed},
		{id: "6.access-quiet", name: "unsolicited", only: 6, in: func(s *segment) message { return announces(true, s.a.MAC, 1) }, fate: confined, outcome: arp.Forbidden},
	} {
		rows = append(rows, each(c.id, c.name, c.only, func(l *lab, v6 bool, vlan uint16) {
			s := l.neighbours(v6, vlan, arp.TableConfig{}, arp.Config{Mode: arp.Suppress, AccessMAC: c.mac}, nil)
			l.access(s)
			m := c.in(s)
			s.sends(m.bytes(), c.outcome)
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
	return append(rows, onlyRows()...)
}

// onlyRows are an access port that lets nothing but IP in, and that to the gateway.
func onlyRows() (rows []row) {
	for _, c := range []struct {
		name   string
		typ    uint16
		passes bool
	}{
		{"IPv4", 0x0800, true}, {"IPv6", 0x86dd, true},
		{"local experimental", 0x88b5, false}, {"LLDP", 0x88cc, false}, {"IPX", 0x8137, false}, {"PPPoE", 0x8864, false},
		{"MPLS", 0x8847, false}, {"RARP", 0x8035, false}, {"802.3 length", 46, false}, {"zero", 0, false},
	} {
		rows = append(rows, row{id: "6.access-only", name: c.name, wire: func(l *lab) {
			s := l.neighbours(false, 0, arp.TableConfig{}, arp.Config{Mode: arp.Suppress}, nil)
			l.access(s)
			l.set(gwMAC, 0, fdb.Static)
			for _, to := range []frame.MAC{s.b.MAC, rmac(3), nobody, frame.Broadcast, groupMAC(allNodes), gwMAC} {
				s.a.Send(mem.Ethernet(to, s.a.MAC, c.typ, nil))
			}
			l.quiet()
			if c.passes { // to the gateway, which there is none of
				l.drops(map[string]uint64{"not-gateway": 5, "no-route": 1})
			} else {
				l.drops(map[string]uint64{"ether-type": 6})
			}
			// The other port and the tunnel are not access ports.
			b := mem.Ethernet(s.a.MAC, s.b.MAC, c.typ, nil)
			s.b.Send(b)
			s.f.send(vx(vni, mem.Ethernet(s.a.MAC, rmac(3), c.typ, nil)))
			s.a.Want(b, mem.Ethernet(s.a.MAC, rmac(3), c.typ, nil))
		}})
	}
	return append(rows, row{id: "6.access-only", name: "teaches nothing", wire: func(l *lab) {
		s := l.neighbours(false, 0, arp.TableConfig{}, arp.Config{Mode: arp.Suppress}, nil)
		l.access(s)
		s.a.Send(mem.Ethernet(nobody, rmac(99), 0x88b5, nil))
		_, ok := l.seg.FDB().Lookup(rmac(99))
		l.check(!ok, "learned")
	}})
}
