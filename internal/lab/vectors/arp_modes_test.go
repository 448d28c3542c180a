package vectors

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var linkLocal = netip.MustParseAddr("169.254.1.1")

// access puts port a into mode Access.
func (l *lab) access(s *segment) {
	l.T.Helper()
	r := check.Must(s.r.With(arp.Access))(l.T)
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
		{id: "6.access-quiet", name: "an answer to nobody", only: 4, in: unasked, fate: confined, outcome: arp.Forbidden},
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

// A leaf is one site of the walk: a VTEP in mode Proxy with its gateway and two hosts.
type leaf struct {
	*mem.Node
	h, o    *mem.Host // o only listens
	r       *arp.Responder
	own, gw frame.MAC
}

func (l *lab) leaf(v6 bool, n byte) *leaf {
	l.T.Helper()
	f := &leaf{Node: l.Node, own: frame.MAC{2, 0xee, 0, n, 0, 2}, gw: frame.MAC{2, 0xee, 0, n, 0, 1}}
	f.r = l.responder(f.Segment(vni), arp.TableConfig{}, arp.Config{Mode: arp.Proxy, MAC: f.own},
		&arp.Gateway{IPs: []netip.Addr{inner(v6, gatewayHost)}, MAC: f.gw, Anycast: true})
	f.h, f.o = f.Host(vni), f.Host(vni)
	return f
}

// proxyRows are the ARP half of mode Proxy: who asks whom in whose name.
func proxyRows() (rows []row) {
	leaves := func(l *lab, v6 bool) (a, b *leaf) {
		l.T.Helper()
		l.Node = l.NodeWith(l.addr(1).String(), nil, nil)
		na, nb := l.Node, l.NodeWith(l.addr(2).String(), nil, nil)
		l.Mesh(vni, na, nb)
		a = l.leaf(v6, 1)
		l.Node = nb
		b = l.leaf(v6, 2)
		return a, b
	}
	named := func(m message, mac frame.MAC) []byte { m.src, m.senderMAC = mac, mac; return m.bytes() }
	rows = append(rows, row{id: "1.gbp-own", name: "what mode Proxy asks in its own name has none", wire: func(l *lab) {
		l.start(withGBP, floods{2})
		f := l.far(2)
		a := l.leaf(false, 1)
		l.must(a.h.At.Configure(vswitch.AttachConfig{GBP: 8}))
		q := asks(false, a.h.MAC, 1, 3)
		a.h.Send(q.bytes())
		f.want(vx(vni, named(q, a.own)))
	}})
	for _, v6 := range []bool{false, true} {
		of := pick(v6, "ARP", "ND")
		rows = append(rows, row{id: "6.proxy-walk", name: of, wire: func(l *lab) {
			a, b := leaves(l, v6)
			q := asks(v6, a.h.MAC, 1, 3)
			a.h.Send(q.bytes())
			a.h.Want()
			a.o.Want(named(q, a.own)) // all local and remote ports
			b.h.Want(named(q, b.gw))
			b.o.Want(named(q, b.gw))
			re := says(v6, b.h.MAC, 3, b.gw, 1)
			b.h.Send(re.bytes())
			home := says(v6, a.gw, 3, a.h.MAC, 1)
			a.h.Want(home.bytes())
			l.quiet()
			// What each end holds, and no MAC of the other's hosts.
			for _, c := range []struct {
				f    *leaf
				host byte
				mac  frame.MAC
			}{{a, 1, a.h.MAC}, {a, 3, b.own}, {b, 1, a.own}, {b, 3, b.h.MAC}} {
				e, ok := c.f.r.Table().Lookup(inner(v6, c.host))
				l.check(ok && e.MAC == c.mac, "%v: host %d: %+v, want %v", c.f.Addr, c.host, e, c.mac)
			}
			for _, c := range []struct {
				f, other *leaf
			}{{a, b}, {b, a}} {
				for _, m := range []frame.MAC{c.other.h.MAC, c.other.o.MAC, c.other.gw} {
					d, ok := c.f.Segment(vni).FDB().Lookup(m)
					l.check(!ok, "%v has %v at %v", c.f.Addr, m, d)
				}
			}
			// The second time A answers by itself.
			a.h.Send(q.bytes())
			if home.flags != 0 {
				home.flags |= naRouter
			}
			a.h.Want(home.bare())
			l.clean()
		}}, row{id: "6.proxy-local", name: of, wire: func(l *lab) {
			a, _ := leaves(l, v6)
			q := asks(v6, a.h.MAC, 1, 2)
			a.h.Send(q.bytes())
			a.o.Want(named(q, a.own))
			l.forget()
			a.o.Send(says(v6, a.o.MAC, 2, a.own, 1).bytes())
			a.h.Want(says(v6, a.gw, 2, a.h.MAC, 1).bytes())
			l.WantQuiet()
		}}, row{id: "6.proxy-lost", name: of, wire: func(l *lab) {
			a, _ := leaves(l, v6)
			a.h.Send(says(v6, a.h.MAC, 1, a.own, 9).bytes()) // nobody asked
			l.clean()
		}})
	}
	return rows
}
