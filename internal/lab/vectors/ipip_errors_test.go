package vectors

import (
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// reportRows are what the network says of the outer packet.
func reportRows() []row {
	return slices.Concat(
		forIP("8.mtu", "told the inner source, from the host it was for", func(l *lab, t encap.Type, v6 bool) {
			j := l.joined(vtep.Config{Type: t})
			l.Net.SetLink(l.addr(1), l.addr(2), memory.Link{PathMTU: 1400})
			fits := l.fits(t, 1400)
			p := j.packet(v6).long(fits + 1)
			j.send(p.bytes()) // lost, and the VTEP told
			l.quiet()
			j.send(p.bytes())
			j.want(tooLong.about(p, p.dst, fits))
			j.f.want()
			p = p.long(fits)
			j.send(p.bytes())
			j.f.want(j.wrap(p.bytes()))
			l.clean()
		}),
		[]row{{id: "8.mtu", name: "IPv4 without DF is cut", wire: func(l *lab) {
			j := l.joined(ipip)
			fits := l.fits(encap.TypeIPIP, 1400)
			l.narrowPath(2, 1400, j.packet(false).long(1450).bytes())
			p := j.packet(false).long(1450)
			p.df = false
			j.send(p.bytes())
			var want [][]byte
			for _, b := range p.pieces(fits) {
				want = append(want, b[14:])
			}
			if len(want) != 2 {
				l.T.Fatalf("%d pieces", len(want))
			}
			j.f.want(want...)
			l.clean()
		}}},
		inside("8.unreachable", "told the inner source, and the packet goes all the same", func(l *lab, v6 bool) {
			j := l.lonely(ipip, vni)
			p, q := j.packet(v6), j.packet(v6)
			q.src = ipOf(v6, vni, 7) // who sends next is told: what routers quote has not room for who sent before
			j.send(p.bytes())
			j.want()
			f := l.far(2)
			j.send(q.bytes())
			j.want(hostGone.about(q, q.dst, 0))
			f.want(q.bytes())
			j.send(p.bytes())
			j.want()
			f.want(p.bytes())
			l.drops(nil)
		}),
		inside("8.unreachable", "once for each report", func(l *lab, v6 bool) {
			j := l.lonely(ipip, vni)
			p := j.packet(v6)
			for k := range 4 {
				j.send(p.bytes())
				if k == 0 {
					j.want()
				} else {
					j.want(hostGone.about(p, p.dst, 0))
				}
			}
			l.drops(nil)
		}),
		inside("8.unreachable", "not of an ICMP error", func(l *lab, v6 bool) {
			j := l.lonely(ipip, vni)
			p := j.packet(v6)
			j.send(p.bytes())
			j.send(exceeded.about(j.back(v6), ipOf(v6, vni, 1), 0))
			j.want()
		}),
		inside("8.soft-state", "a report is told within 30 s", func(l *lab, v6 bool) {
			j := l.lonely(ipip, vni)
			p := j.packet(v6)
			for _, wait := range []time.Duration{29 * time.Second, 31 * time.Second} {
				j.send(p.bytes())
				l.pass(wait)
				f := l.far(2)
				j.send(p.bytes())
				f.want(p.bytes())
				if wait < 30*time.Second {
					j.want(hostGone.about(p, p.dst, 0))
				} else {
					j.want()
				}
				f.u.Close()
			}
		}),
		[]row{
			{id: "8.soft-state", name: "an MTU is believed for 10 minutes", wire: func(l *lab) {
				j := l.joined(ipip)
				whole := l.VTEP.MTU(j.peer)
				l.narrowPath(2, 1400, j.packet(false).long(1450).bytes())
				l.pass(vtep.PathMTUAge - time.Minute)
				n := l.VTEP.MTU(j.peer)
				l.check(n == l.fits(encap.TypeIPIP, 1400), "MTU %d", n)
				l.pass(2 * time.Minute)
				equal(l, "MTU", l.VTEP.MTU(j.peer), whole)
			}},
			{id: "8.soft-state", name: "each peer has its own", wire: func(l *lab) {
				v, s, two, three := l.spied(ipip)
				quoted := bareIP(false)
				s.narrow(l.endpoint(2), 1400, quoted)
				s.unreachable(l.endpoint(2), quoted)
				a, b := v.MTU(two), v.MTU(three)
				l.check(a == l.fits(encap.TypeIPIP, 1400) && b == l.fits(encap.TypeIPIP, 1500), "MTU %d and %d", a, b)
				l.check(v.Failed(two) && !v.Failed(two) && !v.Failed(three), "the report was not peer 2's, or not one")
			}},
			{id: "8.quoted", name: "a packet that is none of ours", wire: func(l *lab) {
				v, s, two, three := l.spied(ipip)
				for name, quoted := range map[string][]byte{"no IP": {0x55, 0, 0, 0}, "VXLAN": vx(vni, in1), "zeros": make([]byte, 28)} {
					s.narrow(l.endpoint(2), 1400, quoted)
					s.unreachable(l.endpoint(2), quoted)
					l.check(v.MTU(two) == l.fits(encap.TypeIPIP, 1500) && !v.Failed(two), "%s: MTU %d", name, v.MTU(two))
				}
				s.narrow(l.endpoint(9), 1400, bareIP(false)) // to a host that is no peer
				s.unreachable(l.endpoint(9), bareIP(false))
				l.check(v.MTU(two) == l.fits(encap.TypeIPIP, 1500) && v.MTU(three) == v.MTU(two) && !v.Failed(two) && !v.Failed(three), "MTU %d and %d", v.MTU(two), v.MTU(three))
				s.narrow(l.endpoint(2), 1400, bareIP(true))
				s.unreachable(l.endpoint(2), nil) // nothing is quoted beyond the outer header
				l.check(v.MTU(two) == l.fits(encap.TypeIPIP, 1400) && v.Failed(two), "ours: MTU %d", v.MTU(two))
			}},
		},
	)
}

// fits is the longest IP packet that a tunnel carries as it is, without a frame around it.
func (l *lab) fits(t encap.Type, mtu int) int {
	outer := map[encap.Type][2]int{encap.TypeGPE: {36, 56}, encap.TypeIPIP: {20, 40}}[t]
	if l.ip6 {
		return mtu - outer[1]
	}
	return mtu - outer[0]
}
