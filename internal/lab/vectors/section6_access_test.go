package vectors

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var linkLocal = netip.MustParseAddr("169.254.1.1")

// access puts port a into mode Access.
func (l *lab) access(s *segment) {
	l.T.Helper()
	r, err := s.r.With(arp.Access)
	l.must(err)
	l.must(s.a.At.Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Neighbour: r}}))
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
		{id: "6.access-quiet", name: "an answer to nobody", only: 4, in: func(s *segment) message {
			m := announces(false, s.a.MAC, 1)
			m.answer = true
			return m
		}, fate: consumed, branch: arp.Forbidden},
		{id: "6.access-quiet", name: "a spoofed question", in: question(3, func(_ *segment, m *message) { m.senderMAC = rmac(99) }), fate: consumed, branch: arp.Forbidden},
		{id: "6.access-quiet", name: "hop limit 254", only: 6, in: question(3, func(_ *segment, m *message) { m.hopLimit = 254 }), fate: consumed, branch: arp.Malformed},
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
