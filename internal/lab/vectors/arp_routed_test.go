package vectors

import (
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// routedNeighbourRows are what ARP and ND promise in the modes Access and Proxy, kept by the
// gateway: packets to the MAC that was the answer get there.
func routedNeighbourRows() []row {
	return slices.Concat(accessIPRows(), proxyRouteRows())
}

func accessIPRows() []row {
	// ports is a site with host a at an access port, in VNI 100; c is on another one.
	ports := func(l *lab, v6 bool) (s *site, c *mem.Host) {
		l.T.Helper()
		s = l.site(v6, true)
		c = guest(s.Node, vni, s.ip(vni, 4))
		for _, h := range []*mem.Host{s.a, c} {
			stage := check.Must(s.n.Neighbours(vni).With(arp.Access))(l.T)
			l.must(h.At.Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Neighbour: stage}}))
		}
		l.forget()
		return s, c
	}
	asks := func(s *site, host frame.VNI, n byte) packet {
		q := whoHas(s.ip(host, n), s.a.MAC, s.a.IP)
		s.a.Send(q.bytes())
		s.a.Want(gatewayAt(q, gwMAC))
		return s.fromA(s.ip(host, n))
	}
	return slices.Concat(
		inside("6.access-ip", "a host of the same segment", func(l *lab, v6 bool) {
			s, c := ports(l, v6)
			asks(s, vni, 4).sentBy(s.a).reaches(c)
			l.clean()
		}),
		inside("6.access-ip", "one behind the tunnel", func(l *lab, v6 bool) {
			s, c := ports(l, v6)
			s.behind(vni, 3)
			c.Got()
			p := asks(s, vni, 3).sentBy(s.a)
			s.f.want(vx(vni, p.routed(s.own, rmac(3)).bytes()))
			l.clean()
		}),
		inside("6.access-ip", "one of another segment", func(l *lab, v6 bool) {
			s, _ := ports(l, v6)
			asks(s, vni2, 2).sentBy(s.a).reaches(s.b)
			l.clean()
		}),
	)
}

func proxyRouteRows() []row {
	// sites are two with one segment between them, in mode Proxy, host a at one and host b at
	// the other; neither has said anything.
	sites := func(l *lab, v6 bool) (r, o *router, a, b *mem.Host) {
		l.T.Helper()
		r, o = l.router(1), l.router(2)
		for _, x := range []*router{r, o} {
			x.iface("red", vni, node.Gateway{Addresses: gateAddrs(vni), MAC: gwMAC, Anycast: true}, arp.Proxy)
			x.tunnel(vni, 1, 2)
		}
		a, b = r.Host(vni), o.Host(vni)
		a.IP, b.IP = ipOf(v6, vni, 1), ipOf(v6, vni, 3)
		return r, o, a, b
	}
	// found has host b answer the question that it gets.
	found := func(a, b *mem.Host) {
		q := whoHas(b.IP, gwMAC, a.IP)
		b.Want(q.bytes())
		b.Send(isAt(q, b.MAC).bytes())
	}
	// apart fails the test if a site knows a MAC of the other one's hosts.
	apart := func(l *lab, r, o *router, a, b *mem.Host) {
		for _, c := range []struct {
			x   *router
			mac frame.MAC
		}{{r, b.MAC}, {o, a.MAC}} {
			d, ok := c.x.Segment(vni).FDB().Lookup(c.mac)
			l.check(!ok, "%v has %v at %v", c.x.Addr, c.mac, d)
		}
		l.clean()
	}
	return slices.Concat(
		inside("6.proxy-route", "asked, then routed twice each way", func(l *lab, v6 bool) {
			r, o, a, b := sites(l, v6)
			q := whoHas(b.IP, a.MAC, a.IP)
			a.Send(q.bytes())
			found(a, b)
			a.Want(isAt(q, gwMAC).bytes())
			ping(a, b, gwMAC, 62, gwMAC, gwMAC)
			apart(l, r, o, a, b)
		}),
		inside("6.proxy-route", "the MACs on the way are those of the VTEPs", func(l *lab, v6 bool) {
			s := &site{router: l.router(1), v6: v6, f: l.far(2)}
			s.iface("red", vni, node.Gateway{Addresses: gateAddrs(vni), MAC: gwMAC, Anycast: true}, arp.Proxy)
			s.tunnel(vni, 2)
			s.a = guest(s.Node, vni, s.ip(vni, 1))
			other := frame.MAC{2, 0xaa, 0, 0, 0, 2}
			s.f.send(vx(vni, here(other, s.ip(vni, 3))))
			l.forget()
			p := s.fromA(s.ip(vni, 3)).sentBy(s.a)
			s.f.want(vx(vni, p.routed(s.own, other).bytes()))
			p = packetOf(other, s.ip(vni, 3), s.own, s.a.IP)
			s.f.send(vx(vni, p.bytes()))
			p.reaches(s.a)
			l.clean()
		}),
		inside("6.proxy-route", "a packet before any question", func(l *lab, v6 bool) {
			r, o, a, b := sites(l, v6)
			// Host a knows its gateway, and the gateway host a.
			q := whoHas(ipOf(v6, vni, gatewayHost), a.MAC, a.IP)
			a.Send(q.bytes())
			a.Got()
			p := packetOf(a.MAC, a.IP, gwMAC, b.IP).asEcho().sentBy(a)
			a.Got() // the gateway asks in its name
			found(a, b)
			b.Want(p.routed(gwMAC, gwMAC).routed(gwMAC, b.MAC).bytes())
			a.Got()
			ping(a, b, gwMAC, 62, gwMAC, gwMAC)
			apart(l, r, o, a, b)
		}),
	)
}
