package vectors

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// asker is the address that a gateway which is the only one asks from: its own, or in ND
// the link-local one of its MAC (RFC 4291, appendix A).
func asker(v6 bool, mac frame.MAC, subnet byte) netip.Addr {
	if !v6 {
		return ipOf(false, subnet, gatewayHost)
	}
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5]})
}

// asks is a gateway's question for a host. One that others have too asks in nobody's name
// and with the VTEP's own MAC, or others would get the answer.
func (s *site) asks(ip netip.Addr, anycast bool) message {
	switch {
	case !anycast:
		return whoHas(ip, gwMAC, asker(s.v6, gwMAC, vni2))
	case s.v6:
		return whoHas(ip, s.own, asker(true, s.own, vni2))
	}
	return whoHas(ip, s.own, netip.IPv4Unspecified())
}

// resolveRows are packets whose next hop nobody has heard of.
func resolveRows() (rows []row) {
	for _, anycast := range []bool{false, true} {
		name := pick(anycast, "centralised", "anycast")
		rows = append(rows, inside("7.first", "a local host, "+name, func(l *lab, v6 bool) {
			s := l.site(v6, anycast)
			c := s.Host(vni2) // it has said nothing
			c.IP = s.ip(vni2, 5)
			p := s.fromA(c.IP).asEcho().sentBy(s.a)
			q := s.asks(c.IP, anycast)
			c.Want(q.bytes())
			s.b.Want(q.bytes())
			s.f.want(vx(vni2, q.bytes()))
			c.Send(isAt(q, c.MAC).bytes())
			p = p.routed(gwMAC, c.MAC)
			c.Want(p.bytes())
			p = p.replied()
			c.Send(p.bytes())
			p.reaches(s.a)
			l.clean()
		})...)
		rows = append(rows, inside("7.first", "a host behind a tunnel, "+name, func(l *lab, v6 bool) {
			s := l.site(v6, anycast)
			ip := s.ip(vni2, 5)
			p := s.fromA(ip).asEcho().sentBy(s.a)
			q := s.asks(ip, anycast)
			s.f.want(vx(vni2, q.bytes()))
			s.b.Want(q.bytes())
			s.f.send(vx(vni2, isAt(q, rmac(5)).bytes()))
			from := pick(anycast, gwMAC, s.own)
			s.f.want(vx(vni2, p.routed(from, rmac(5)).bytes()))
			l.clean()
		})...)
	}
	return slices.Concat(rows,
		inside("7.anycast-asks", "a host at a VTEP which has the same gateway", func(l *lab, v6 bool) {
			r, o := l.router(1), l.router(2)
			for _, x := range []*router{r, o} {
				x.gate(vni, true)
				x.gate(vni2, true)
				x.tunnel(vni2, 1, 2)
			}
			a, b := guest(r.Node, vni, ipOf(v6, vni, 1)), o.Host(vni2)
			p := packetOf(a.MAC, a.IP, gwMAC, ipOf(v6, vni2, 5)).sentBy(a)
			q := (&site{router: r, v6: v6}).asks(p.dst, true)
			b.Want(q.bytes())
			b.Send(isAt(q, b.MAC).bytes())
			b.Want(p.routed(r.own, b.MAC).bytes())
			l.clean()
		}),
		inside("7.queue", "three wait, in order, and are asked for once", func(l *lab, v6 bool) {
			s := l.site(v6, false)
			ip := s.ip(vni2, 5)
			p := s.fromA(ip)
			for n := range uint16(5) {
				p.sport = n
				s.a.Send(p.bytes())
			}
			q := s.asks(ip, false)
			s.b.Want(q.bytes())
			s.f.want(vx(vni2, q.bytes()))
			l.drops(map[string]uint64{"unresolved": 2})
			s.f.send(vx(vni2, isAt(q, rmac(5)).bytes()))
			var want [][]byte
			for n := range uint16(3) {
				p.sport = n
				want = append(want, vx(vni2, p.routed(gwMAC, rmac(5)).bytes()))
			}
			s.f.want(want...)
			l.quiet()
		}),
		inside("7.unresolved", "asked three times, then its senders are told", func(l *lab, v6 bool) {
			s := l.site(v6, false)
			ip := s.ip(vni2, 5)
			p, told := s.fromA(ip), [][]byte(nil)
			for n := range uint16(2) {
				p.sport = n
				s.a.Send(p.bytes())
				told = append(told, hostGone.about(p, s.ip(vni, gatewayHost), 0))
			}
			q := s.asks(ip, false).bytes()
			s.b.Want(q)
			s.a.Want()
			l.pass(5 * tick)
			s.b.Want(q, q)
			s.a.Want(told...)
			n := len(s.f.got())
			l.check(n == 3, "asked the far end %d times", n)
			// For a moment nobody waits; then it is asked anew.
			s.a.Send(p.bytes())
			s.a.Want(told[1])
			s.b.Want()
			l.pass(4 * tick)
			s.a.Send(p.bytes())
			s.b.Want(q)
			s.a.Want()
		}),
		inside("7.unresolved", "who asks through a tunnel is told there", func(l *lab, v6 bool) {
			s := l.site(v6, false)
			s.behind(vni, 3)
			p := packetOf(rmac(3), s.ip(vni, 3), gwMAC, s.ip(vni2, 5))
			s.f.send(vx(vni, p.bytes()))
			l.forget()
			l.pass(5 * tick)
			got := s.f.got()
			if n := len(got); n != 3 { // two questions before
				l.T.Fatalf("%d frames", n)
			}
			want := vx(vni, hostGone.about(p, s.ip(vni, gatewayHost), 0))
			l.check(slices.Equal(got[2], want), "% x, want % x", got[2], want)
		}),
	)
}
