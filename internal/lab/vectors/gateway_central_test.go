package vectors

import (
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// placeRows are where gateways stand: one for all, or one at each VTEP.
func placeRows() []row {
	return slices.Concat(
		inside("7.centralised", "63 at the receiver, from nothing known", centralPing),
		inside("7.centralised", "two encapsulations", func(l *lab, v6 bool) {
			r := l.router(1)
			r.gate(vni, false)
			r.gate(vni2, false)
			r.tunnel(vni, 2)
			r.tunnel(vni2, 3)
			f, g := l.far(2), l.far(3)
			g.send(vx(vni2, here(rmac(2), ipOf(v6, vni2, 2))))
			p := packetOf(rmac(1), ipOf(v6, vni, 1), gwMAC, ipOf(v6, vni2, 2))
			f.send(vx(vni, p.bytes()))
			f.want()
			g.want(vx(vni2, p.routed(gwMAC, rmac(2)).bytes()))
			l.drops(nil)
		}),
		inside("7.centralised", "out of one tunnel and into it again", func(l *lab, v6 bool) {
			s := l.site(v6, false)
			s.behind(vni2, 3)
			p := packetOf(rmac(1), s.ip(vni, 1), gwMAC, s.ip(vni2, 3))
			s.f.send(vx(vni, p.bytes()))
			s.f.want(vx(vni2, p.routed(gwMAC, rmac(3)).bytes()))
			l.clean()
		}),
		inside("7.distributed", "two hosts of one leaf never leave it", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			q := whoHas(s.ip(vni, gatewayHost), s.a.MAC, s.a.IP)
			s.a.Send(q.bytes())
			s.a.Want(gatewayAt(q, gwMAC))
			p := s.fromA(s.b.IP).asEcho().sentBy(s.a)
			p = p.routed(gwMAC, s.b.MAC)
			s.b.Want(p.bytes())
			p = p.replied().sentBy(s.b)
			p.reaches(s.a)
			l.quiet() // the tunnel too
			l.drops(nil)
		}),
		inside("7.distributed", "asked through a tunnel it says nothing", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			q := whoHas(s.ip(vni, gatewayHost), rmac(3), s.ip(vni, 3))
			s.f.send(vx(vni, q.bytes()))
			s.a.Want(q.bytes())
			l.quiet()
		}),
		inside("7.anycast-source", "from a tunnel: accepted, and never learned", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			p := packetOf(gwMAC, s.ip(vni, 3), s.b.MAC, s.b.IP)
			s.f.send(vx(vni2, p.bytes()))
			s.b.Want(p.bytes())
			s.gateKept(vni2)
			p = packetOf(s.b.MAC, s.b.IP, gwMAC, s.a.IP).sentBy(s.b)
			p.reaches(s.a)
			l.clean()
		}),
		inside("7.anycast-source", "from a local port: dropped", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			c := guest(s.Node, vni2, s.ip(vni2, 4))
			l.forget()
			s.b.Send(packetOf(gwMAC, s.b.IP, c.MAC, c.IP).bytes())
			c.Want()
			s.gateKept(vni2)
			l.dropped("own-mac")
		}),
		inside("7.anycast-source", "the VTEP's own, from a tunnel: dropped", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			s.f.send(vx(vni2, packetOf(s.own, s.ip(vni, 3), s.b.MAC, s.b.IP).bytes()))
			s.gateKept(vni2)
			l.dropped("own-mac")
		}),
		inside("7.anycast-source", "not its own, a centralised gateway's", func(l *lab, v6 bool) {
			s := l.site(v6, false)
			s.f.send(vx(vni2, packetOf(gwMAC, s.ip(vni, 3), s.b.MAC, s.b.IP).bytes()))
			s.gateKept(vni2)
			l.dropped("own-mac")
		}),
		inside("7.asymmetric", "into the target's segment, from the VTEP's own MAC", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			s.behind(vni2, 3)
			p := s.fromA(s.ip(vni2, 3)).sentBy(s.a)
			s.f.want(vx(vni2, p.routed(s.own, rmac(3)).bytes()))
			l.clean()
		}),
		inside("7.asymmetric", "there and back, 63 at the receiver", asymmetricPing),
	)
}

// gateKept fails the test if the gateway's MAC is anywhere but here.
func (s *site) gateKept(n frame.VNI) {
	s.l.T.Helper()
	d, ok := s.Segment(n).FDB().Lookup(gwMAC)
	s.l.check(ok && d == 0, "the gateway's MAC is at %v", d)
}

// centralPing has two leaves without gateways, and one at a third VTEP. Nobody knows
// anybody; the first ping is answered.
func centralPing(l *lab, v6 bool) {
	r := l.router(1)
	r.gate(vni, false)
	r.gate(vni2, false)
	n, m := l.NodeWith(l.addr(2).String(), nil, nil), l.NodeWith(l.addr(3).String(), nil, nil)
	l.Mesh(vni, r.Node, n)
	l.Mesh(vni2, r.Node, m)
	a, b := n.Host(vni), m.Host(vni2)
	a.IP, b.IP = ipOf(v6, vni, 1), ipOf(v6, vni2, 2)
	q := whoHas(ipOf(v6, vni, gatewayHost), a.MAC, a.IP)
	a.Send(q.bytes())
	a.Want(gatewayAt(q, gwMAC))
	p := packetOf(a.MAC, a.IP, gwMAC, b.IP).asEcho().sentBy(a)
	asked := whoHas(b.IP, gwMAC, asker(v6, gwMAC, vni2))
	b.Want(asked.bytes())
	b.Send(isAt(asked, b.MAC).bytes())
	p.reaches(b).replied().sentBy(b).reaches(a)
	ping(a, b, gwMAC, 63, gwMAC, gwMAC)
	l.clean()
}

// asymmetricPing has both segments and the gateway at both VTEPs, host a at one and host b
// at the other.
func asymmetricPing(l *lab, v6 bool) {
	r, o := l.router(1), l.router(2)
	for _, x := range []*router{r, o} {
		for _, n := range []frame.VNI{vni, vni2} {
			x.gate(n, true)
			x.tunnel(n, 1, 2)
		}
	}
	a, b := guest(r.Node, vni, ipOf(v6, vni, 1)), guest(o.Node, vni2, ipOf(v6, vni2, 2))
	ping(a, b, gwMAC, 63, r.own, o.own)
	l.clean()
}
