package vectors

import (
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
)

// ownRows are what comes to the gateway itself, and what is none of its business.
func ownRows() []row {
	return slices.Concat(
		inside("7.echo", "each of its addresses", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			for _, seg := range []frame.VNI{vni, vni2} { // the near one, the far one
				p := s.fromA(s.ip(seg, gatewayHost)).asEcho()
				p.ttl = 1 // it need not go further
				s.a.Send(p.bytes())
				s.a.Want(p.replied().bytes())
			}
			l.clean()
		}),
		inside("7.echo", "through a tunnel", func(l *lab, v6 bool) {
			s := l.site(v6, false)
			p := packetOf(rmac(3), s.ip(vni, 3), gwMAC, s.ip(vni, gatewayHost)).asEcho()
			s.f.send(vx(vni, p.bytes()))
			s.f.want(vx(vni, p.replied().bytes()))
			l.clean()
		}),
		inside("7.echo", "a wrong checksum", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			b := s.fromA(s.ip(vni, gatewayHost)).asEcho().bytes()
			b[len(b)-1]++
			s.a.Send(b)
			l.dropped("bad-checksum")
		}),
		inside("7.echo", "another service", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			p := s.fromA(s.ip(vni2, gatewayHost)).sentBy(s.a)
			s.a.Want(portClosed.about(p, s.ip(vni, gatewayHost), 0))
			l.clean()
		}),
		strangerRows(),
		checksumRows(),
		inside("7.rewrite", "MACs, and nothing else", func(l *lab, v6 bool) {
			s := l.site(v6, false)
			s.fromA(s.b.IP).sentBy(s.a).reaches(s.b)
			l.clean()
		}),
	)
}

// strangerRows are frames that the gateway sees, or could, and that are not for its MAC: the
// packet in them is for host b, and does not get there.
func strangerRows() (rows []row) {
	other := frame.MAC{2, 0xee, 0, 0, 0, 9}
	for _, c := range []struct {
		name    string
		to      frame.MAC
		flooded bool
		drops   map[string]uint64
	}{
		{name: "to a MAC of the switch's that is not the gateway's", to: other, drops: one("no-route")},
		{name: "unknown unicast", to: nobody, flooded: true},
		{name: "broadcast", to: frame.Broadcast, flooded: true},
		{name: "multicast", to: mcast, flooded: true},
	} {
		rows = append(rows, inside("7.not-ours", c.name, func(l *lab, v6 bool) {
			s := l.site(v6, true)
			l.must(s.Segment(vni).FDB().Set(other, 0, fdb.Static))
			p := s.fromA(s.b.IP)
			p.to = c.to
			s.a.Send(p.bytes())
			if c.flooded {
				s.f.want(vx(vni, p.bytes())) // in its own segment
			}
			l.quiet()
			l.drops(c.drops)
		})...)
	}
	return append(rows, row{id: "7.not-ours", name: "to its MAC, and no IP", wire: func(l *lab) {
		s := l.site(false, true)
		s.a.Send(eth(gwMAC, s.a.MAC, "what is this?"))
		l.dropped("no-route")
	}})
}

// checksumRows are about the header's checksum of IPv4.
func checksumRows() (rows []row) {
	rows = append(rows, row{id: "7.checksum", name: "wrong on entry", wire: func(l *lab) {
		s := l.site(false, true)
		b := s.fromA(s.b.IP).bytes()
		b[24] ^= 1
		s.a.Send(b)
		l.dropped("bad-checksum")
	}}, row{id: "7.checksum", name: "wrong inside is not its business", wire: func(l *lab) {
		s := l.site(false, true)
		p := s.fromA(s.b.IP)
		b, want := p.bytes(), p.routed(gwMAC, s.b.MAC).bytes()
		b[40]++ // UDP's
		want[40]++
		s.a.Send(b)
		s.b.Want(want)
		l.drops(nil)
	}})
	// Fixing it incrementally has its traps where the sum is 0 (RFC 1624, section 3).
	for _, sum := range []uint16{0, 1, 0xfe, 0xff, 0x100, 0xfefe, 0xfeff, 0xff00, 0xfffe} {
		rows = append(rows, row{id: "7.checksum", name: fmt.Sprintf("%04x after TTL 63", sum), wire: func(l *lab) {
			s := l.site(false, true)
			p := s.fromA(s.b.IP)
			p.id = 0
			h := slices.Clone(p.routed(gwMAC, s.b.MAC).bytes()[14:34])
			h[10], h[11] = 0, 0
			// With an identification that makes up for the difference it is sum.
			p.id = ^ones([]byte{byte(ones(h) >> 8), byte(ones(h)), byte(^sum >> 8), byte(^sum)})
			want := p.routed(gwMAC, s.b.MAC).bytes()
			if got := uint16(want[24])<<8 | uint16(want[25]); got != sum {
				l.T.Fatalf("the row is about %04x, not %04x", got, sum)
			}
			s.a.Send(p.bytes())
			s.b.Want(want)
			l.drops(nil)
		}})
	}
	return rows
}

// hopRows are about TTL and hop limit.
func hopRows() []row {
	return slices.Concat(
		inside("7.ttl", "one less", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			for _, ttl := range []uint8{255, 64, 2} {
				p := s.fromA(s.b.IP)
				p.ttl = ttl
				s.a.Send(p.bytes())
				p.reaches(s.b)
			}
			l.clean()
		}),
		inside("7.ttl-exceeded", "1 and 0, for a local host", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			for ttl := range uint8(2) {
				p := s.fromA(s.b.IP)
				p.ttl = ttl
				s.a.Send(p.bytes())
				s.a.Want(exceeded.about(p, s.ip(vni, gatewayHost), 0))
			}
			l.clean()
		}),
		inside("7.ttl-exceeded", "1 and 0, for a host behind a tunnel", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			s.behind(vni2, 3)
			for ttl := range uint8(2) {
				p := s.fromA(s.ip(vni2, 3))
				p.ttl = ttl
				s.a.Send(p.bytes())
				s.a.Want(exceeded.about(p, s.ip(vni, gatewayHost), 0))
			}
			l.quiet()
		}),
		inside("7.ttl-exceeded", "1, out of a tunnel", func(l *lab, v6 bool) {
			s := l.site(v6, false)
			p := packetOf(rmac(3), s.ip(vni, 3), gwMAC, s.b.IP)
			p.ttl = 1
			s.f.send(vx(vni, p.bytes()))
			s.f.want(vx(vni, exceeded.about(p, s.ip(vni, gatewayHost), 0)))
			l.quiet()
		}),
		inside("7.ttl-rate", "one sender, and another one", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			p := s.fromA(s.b.IP)
			p.ttl = 1
			told := exceeded.about(p, s.ip(vni, gatewayHost), 0)
			s.a.Send(slices.Repeat([][]byte{p.bytes()}, l3.DefaultPerSender+2)...)
			s.a.Want(slices.Repeat([][]byte{told}, l3.DefaultPerSender)...)
			l.drops(map[string]uint64{"ttl": 2})
			// Two senders share an allowance once in a thousand runs: any of three will do.
			answers := 0
			for n := range byte(3) {
				q := p
				q.src = s.ip(vni, 50+n)
				s.a.Send(q.bytes())
				answers += len(s.a.Got())
			}
			l.check(answers != 0, "one sender has used up what the others may have")
			l.pass(2 * tick)
			s.a.Send(p.bytes())
			s.a.Want(told)
		}),
		inside("7.ttl-bridged", "to a host of the same segment", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			c := guest(s.Node, vni, s.ip(vni, 4))
			s.behind(vni, 3)
			l.forget()
			for _, ttl := range []uint8{64, 1} {
				for _, to := range []frame.MAC{c.MAC, rmac(3)} {
					p := packetOf(s.a.MAC, s.a.IP, to, s.ip(vni, 4))
					p.ttl = ttl
					s.a.Send(p.bytes())
					if to == c.MAC {
						c.Want(p.bytes())
					} else {
						s.f.want(vx(vni, p.bytes()))
					}
				}
			}
			l.clean()
		}),
	)
}
