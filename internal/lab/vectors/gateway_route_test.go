package vectors

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
)

// away is an address that is in no segment, and prefixes of it.
type away struct {
	ip                netip.Addr
	wide, narrow, all netip.Prefix
}

func awayOf(v6 bool) away {
	text := pick(v6, []string{"172.16.1.9", "172.16.0.0/12", "172.16.1.0/24", "0.0.0.0/0"},
		[]string{"fd01:2:3::9", "fd01::/16", "fd01:2:3::/48", "::/0"})
	p := netip.MustParsePrefix
	return away{netip.MustParseAddr(text[0]), p(text[1]), p(text[2]), p(text[3])}
}

// via adds a route through neighbours in VNI 200.
func (s *site) via(p netip.Prefix, hosts ...byte) {
	s.l.T.Helper()
	v := s.n.Gateway().VRF("red")
	r := l3.Route{Prefix: p}
	for _, n := range hosts {
		r.Via = append(r.Via, l3.NextHop{Interface: v.Interface(vni2), IP: s.ip(vni2, n)})
	}
	s.l.must(v.Add(r))
}

// routeRows are what routes do with packets.
func routeRows() []row {
	return slices.Concat(
		inside("7.no-route", "the sender is told", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			p := s.fromA(s.away.ip).sentBy(s.a)
			s.a.Want(noWay.about(p, s.ip(vni, gatewayHost), 0))
			l.clean()
		}),
		inside("7.on-link", "the same segment", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			c := guest(s.Node, vni, s.ip(vni, 4))
			l.forget()
			s.fromA(c.IP).sentBy(s.a).reaches(c)
			l.clean()
		}),
		inside("7.via", "a neighbour", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			s.via(s.away.wide, 2)
			s.fromA(s.away.ip).sentBy(s.a).reaches(s.b)
			l.clean()
		}),
		inside("7.longest", "of three prefixes, and when it goes the next", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			c, d := guest(s.Node, vni2, s.ip(vni2, 4)), guest(s.Node, vni2, s.ip(vni2, 5))
			l.forget()
			s.via(s.away.narrow, 4)
			s.via(s.away.all, 2)
			s.via(s.away.wide, 5)
			for _, h := range []*mem.Host{c, d, s.b} {
				p := s.fromA(s.away.ip).sentBy(s.a)
				p.reaches(h)
				s.n.Gateway().VRF("red").Delete(map[*mem.Host]netip.Prefix{c: s.away.narrow, d: s.away.wide, s.b: s.away.all}[h])
			}
			p := s.fromA(s.away.ip).sentBy(s.a)
			s.a.Want(noWay.about(p, s.ip(vni, gatewayHost), 0))
			l.clean()
		}),
		inside("7.blackhole", "nobody is told", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			s.via(s.away.all, 2)
			s.via(s.away.narrow)
			s.a.Send(s.fromA(s.away.ip).bytes())
			l.dropped("no-route")
		}),
		inside("7.multipath", "a flow has one way, flows have several", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			c := guest(s.Node, vni2, s.ip(vni2, 4))
			l.forget()
			s.via(s.away.wide, 2, 4)
			toB, toC := 0, 0
			for n := range uint16(64) {
				p := s.fromA(s.away.ip)
				p.sport = n
				s.a.Send(p.bytes(), p.bytes())
				b, c := len(s.b.Got()), len(c.Got())
				l.check(b == 2 && c == 0 || b == 0 && c == 2, "flow %d: %d packets and %d", n, b, c)
				toB, toC = toB+b/2, toC+c/2
			}
			l.check(toB >= 8 && toC >= 8, "%d flows and %d", toB, toC) // fewer once in 10^9 runs
			l.drops(nil)
		}),
		inside("7.vrf", "the same prefixes and hosts in two", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			// Blue has red's addresses in segments of its own.
			for n, of := range map[frame.VNI]byte{101: vni, 201: vni2} {
				s.iface("blue", n, node.Gateway{Addresses: gateAddrs(of), MAC: gwMAC, Anycast: true}, arp.Suppress)
			}
			c, d := guest(s.Node, 101, s.a.IP), guest(s.Node, 201, s.b.IP)
			red, blue := s.fromA(s.b.IP), packetOf(c.MAC, c.IP, gwMAC, d.IP)
			s.a.Send(red.bytes())
			c.Send(blue.bytes())
			s.b.Want(red.routed(gwMAC, s.b.MAC).bytes())
			d.Want(blue.routed(gwMAC, d.MAC).bytes())
			// And a route of one is none of the other.
			s.via(s.away.all, 2)
			p := packetOf(c.MAC, c.IP, gwMAC, s.away.ip)
			c.Send(p.bytes())
			c.Want(noWay.about(p, s.ip(vni, gatewayHost), 0))
			l.clean()
		}),
	)
}

// martianRows are packets that no route helps.
func martianRows() (rows []row) {
	for _, c := range []struct {
		name     string
		v6       bool
		src, dst string // host a's, host b's if not set
		reason   string
	}{
		{name: "directed broadcast", dst: "10.0.200.255", reason: "no-route"},
		{name: "the network's own address", dst: "10.0.200.0", reason: "no-route"},
		{name: "broadcast", dst: "255.255.255.255", reason: "martian"},
		{name: "to link-local", dst: "169.254.169.254", reason: "martian"},
		{name: "from link-local", src: "169.254.1.2", reason: "martian"},
		{name: "to multicast", dst: "239.1.2.3", reason: "martian"},
		{name: "from multicast", src: "224.0.0.5", reason: "martian"},
		{name: "to loopback", dst: "127.0.0.1", reason: "martian"},
		{name: "from loopback", src: "127.0.0.1", reason: "martian"},
		{name: "from 0.0.0.0", src: "0.0.0.0", reason: "martian"},
		{name: "from the gateway's address", src: "10.0.100.254", reason: "martian"},
		{name: "reserved", dst: "240.0.0.1", reason: "martian"},
		{name: "IPv6 to link-local", v6: true, dst: "fe80::1", reason: "martian"},
		{name: "IPv6 from link-local", v6: true, src: "fe80::1", reason: "martian"},
		{name: "IPv6 to multicast", v6: true, dst: "ff0e::1", reason: "martian"},
		{name: "IPv6 from multicast", v6: true, src: "ff0e::1", reason: "martian"},
		{name: "IPv6 to loopback", v6: true, dst: "::1", reason: "martian"},
		{name: "IPv6 from loopback", v6: true, src: "::1", reason: "martian"},
		{name: "IPv6 from ::", v6: true, src: "::", reason: "martian"},
		{name: "IPv6 from the gateway's address", v6: true, src: "2001:db8:0:64::fe", reason: "martian"},
	} {
		rows = append(rows, row{id: "7.not-routed", name: c.name, wire: func(l *lab) {
			s := l.site(c.v6, true)
			s.via(s.away.all, 2) // whatever has no other route would go there
			p := s.fromA(s.b.IP)
			if c.src != "" {
				p.src = netip.MustParseAddr(c.src)
			}
			if c.dst != "" {
				p.dst = netip.MustParseAddr(c.dst)
			}
			s.a.Send(p.bytes())
			l.dropped(c.reason)
		}})
	}
	return rows
}
