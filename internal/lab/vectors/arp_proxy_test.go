package vectors

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

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
		of := map[bool]string{false: "ARP", true: "ND"}[v6]
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
