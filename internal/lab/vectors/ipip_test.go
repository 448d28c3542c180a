package vectors

import (
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// ipipRows are about IP in IP.
var ipipRows = slices.Concat(carryRows(), outerFieldRows(), loopRows(), listedRows, reportRows(), ipipWireRows)

var ipip = vtep.Config{Type: encap.TypeIPIP}

// carryRows are what goes through as it is.
func carryRows() []row {
	return slices.Concat(
		inside("8.table", "there and back", func(l *lab, v6 bool) {
			j := l.joined(ipip)
			out, in := j.packet(v6).bytes(), j.back(v6).bytes()
			j.send(out)
			j.f.want(out)
			j.f.send(in)
			j.want(in)
			l.drops(nil)
		}),
		inside("8.table", "both in one tunnel", func(l *lab, v6 bool) {
			j := l.joined(ipip)
			for _, six := range []bool{v6, !v6, v6} {
				p := j.back(six).bytes()
				j.f.send(p)
				j.want(p)
			}
		}),
		[]row{{id: "8.table", name: "one end for both families", local: func(l *lab) {
			l.typ = encap.TypeIPIP
			var us []vtep.Underlay
			for _, l.ip6 = range []bool{false, true} {
				u := check.Must(l.Listen(l.addr(1), l.typ))(l.T)
				us = append(us, u)
			}
			v := check.Must(vtep.New(&ipip, us...))(l.T)
			for _, l.ip6 = range []bool{false, true} {
				peer := check.Must(v.AddPeer(l.at(2)))(l.T)
				f := l.far(2)
				for _, kind := range []frame.Kind{frame.IPv4, frame.IPv6} {
					x := frame.Make(bareIP(kind == frame.IPv6))
					x.Kind = kind
					out := []frame.Out{{F: &x, Peer: peer}}
					l.must(v.Writer(0).Write(out))
					f.want(x.Bytes())
				}
			}
		}}},
		inside("8.ttl", "the inner one stays, the outer one is 64", func(l *lab, v6 bool) {
			j := l.joined(ipip)
			for _, ttl := range []uint8{1, 9, 255} {
				p, q := j.packet(v6), j.back(v6)
				p.ttl, q.ttl = ttl, ttl
				j.send(p.bytes())
				j.f.wantOuter(64, 0, p.bytes())
				j.f.send(q.bytes())
				j.want(q.bytes())
			}
			l.drops(nil)
		}),
		inside("8.ttl-zero", "on its way in", func(l *lab, v6 bool) {
			j := l.joined(ipip)
			p := j.packet(v6)
			p.ttl = 0
			j.send(p.bytes())
			l.dropped("ttl")
		}),
		inside("8.ttl-zero", "on its way out", func(l *lab, v6 bool) {
			j := l.joined(ipip)
			p := j.back(v6)
			p.ttl = 0
			j.f.send(p.bytes())
			l.dropped("ttl")
		}),
		inside("8.nibble", "of the other version", func(l *lab, v6 bool) { l.wrongKind(v6, bareIP(!v6)) }),
		inside("8.nibble", "of none", func(l *lab, v6 bool) { l.wrongKind(v6, append([]byte{0x55}, bareIP(v6)[1:]...)) }),
	)
}

// wrongKind has a packet come under the protocol of a family that it is not of, from a peer
// who before and after sends a right one.
func (l *lab) wrongKind(v6 bool, wrong []byte) {
	l.T.Helper()
	v, s, _, _ := l.spied(ipip)
	kind := pick(v6, frame.IPv4, frame.IPv6)
	s.kind = &kind
	right := bareIP(v6)
	s.payloads = [][]byte{nil, wrong, nil}
	f := l.far(2)
	for range 3 {
		f.send(right)
	}
	b := frame.NewBatch(nil)
	l.must(v.Readers()[0].Read(b))
	for i, want := range []frame.Reason{0, frame.BadHeader, 0} {
		got := b.Frames[i].Drop
		l.check(got == want, "packet %d: %v, want %v", i, got, want)
	}
}

// outerFieldRows are about the outer header.
func outerFieldRows() (rows []row) {
	for _, c := range []struct {
		id, name string
		mode     vtep.DF
		inner    bool // DF
		v6       bool // inside
		set      bool
	}{
		{"8.df", "inner set, always", vtep.DFSet, true, false, true},
		{"8.df", "inner set, never", vtep.DFUnset, true, false, true},
		{"8.df", "inner set, inherited", vtep.DFInherit, true, false, true},
		{"8.df-setting", "always", vtep.DFSet, false, false, true},
		{"8.df-setting", "never", vtep.DFUnset, false, false, false},
		{"8.df-setting", "inherited", vtep.DFInherit, false, false, false},
		{"8.df-setting", "always, IPv6 inside", vtep.DFSet, false, true, true},
		{"8.df-setting", "never, IPv6 inside", vtep.DFUnset, false, true, false},
		{"8.df-setting", "inherited, IPv6 inside", vtep.DFInherit, false, true, true},
	} {
		// A router passes what is too long for its link only without DF.
		rows = append(rows, row{id: c.id, name: c.name, only: "IPv4", wire: func(l *lab) {
			j := l.joined(vtep.Config{Type: encap.TypeIPIP, Header: vtep.Header{DF: c.mode}})
			l.Net.SetLink(l.addr(1), l.addr(2), memory.Link{PathMTU: 1300})
			p := j.packet(c.v6).long(1400)
			p.df = c.inner
			j.send(p.bytes())
			switch lost := l.Net.Stats().TooLong; {
			case c.set:
				j.f.want()
				l.check(lost == 1, "%d lost", lost)
			default:
				j.f.want(p.bytes())
			}
			l.drops(nil)
		}})
	}
	for _, c := range []struct {
		name        string
		header      vtep.Header
		inner, want uint8
	}{
		{"inherited by default", vtep.Header{}, 0xb8, 0xb8},
		{"inherited", vtep.Header{TOS: vtep.Inherit}, 0x28, 0x28},
		{"fixed", vtep.Header{TOS: 0x28}, 0xb8, 0x28},
		{"none", vtep.Header{TOS: vtep.TOSZero}, 0xb8, 0},
		{"fixed, and ECN of the inner one", vtep.Header{TOS: 0x28}, 0xb8 | ect0, 0x28 | ect0},
	} {
		rows = append(rows, inside("8.tos", c.name, func(l *lab, v6 bool) {
			j := l.joined(vtep.Config{Type: encap.TypeIPIP, Header: c.header})
			p := j.packet(v6)
			p.tos = c.inner
			j.send(p.bytes())
			j.f.wantOuter(64, c.want, p.bytes())
		})...)
	}
	return rows
}

// loopRows are packets that would come round again.
func loopRows() (rows []row) {
	for _, c := range []struct {
		id, name string
		change   func(l *lab, p *packet)
		reason   string
	}{
		{"8.loop-own", "from this end", func(l *lab, p *packet) { p.src = l.addr(1) }, "martian"},
		{"8.loop-remote", "from the other end", func(l *lab, p *packet) { p.src = l.addr(2) }, "martian"},
		{"8.loop-destination", "for the other end", func(l *lab, p *packet) { p.dst = l.addr(2) }, "martian"},
		{"8.loop-remote", "from a third one it goes", func(l *lab, p *packet) { p.src = l.addr(3) }, ""},
		{"8.loop-destination", "for a third one it goes", func(l *lab, p *packet) { p.dst = l.addr(3) }, ""},
	} {
		rows = append(rows, row{id: c.id, name: c.name, wire: func(l *lab) {
			j := l.joined(ipip)
			p := j.packet(l.ip6)
			c.change(l, &p)
			j.send(p.bytes())
			if c.reason == "" {
				j.f.want(p.bytes())
				l.drops(nil)
				return
			}
			l.dropped(c.reason)
		}})
	}
	// Each end of several tunnels is judged by its own.
	return append(rows, row{id: "8.loop-remote", name: "of two tunnels, the one it would go into", wire: func(l *lab) {
		v, _, two, three := l.spied(ipip)
		f, g := l.far(2), l.far(3)
		p := packetOf(frame.MAC{}, l.addr(2), frame.MAC{}, ipOf(l.ip6, vni2, 2)).naked().bytes()
		x := frame.Make(p)
		if x.Kind = frame.IPv4; l.ip6 {
			x.Kind = frame.IPv6
		}
		out := []frame.Out{{F: &x, Peer: two}, {F: &x, Peer: three}}
		l.must(v.Writer(0).Write(out))
		f.want()
		g.want(p)
		l.check(out[0].Drop == frame.Martian && out[1].Drop == 0, "%v, %v", out[0].Drop, out[1].Drop)
	}})
}

var listedRows = []row{
	{id: "8.listed", name: "a stranger", wire: func(l *lab) {
		j := l.joined(ipip)
		p := j.back(false).bytes()
		g := l.far(3)
		g.send(p)
		l.dropped("unknown-peer")
		st := l.VTEP.Stats()
		l.check(st.Learned == 0 && len(st.Peers) == 1, "%+v", st)
		l.listed(3)
		g.send(p)
		j.f.send(p)
		// The wire leads to peer 2 only; the other one's packets come in all the same.
		j.want(p, p)
		l.drops(one("unknown-peer"))
	}},
	{id: "8.listed", name: "whatever the setting", wire: func(l *lab) {
		j := l.joined(vtep.Config{Type: encap.TypeIPIP, Peers: vtep.AnyPeer})
		l.far(3).send(j.back(false).bytes())
		l.dropped("unknown-peer")
	}},
	{id: "8.listed", name: "one that was taken off the list", wire: func(l *lab) {
		j := l.joined(ipip)
		l.VTEP.DeletePeer(j.peer)
		j.f.send(j.back(true).bytes())
		l.dropped("unknown-peer")
	}},
	{id: "8.listed", name: "a port is none", wire: func(l *lab) {
		l.joined(ipip)
		n, err := l.VTEP.AddPeer(netip.AddrPortFrom(l.addr(3), 4789))
		l.check(err != nil, "peer %d", n)
	}},
}

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
			check.Need(l.T, len(want) == 2, "%d pieces", len(want))
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
				check.Equal(l.T, "MTU", l.VTEP.MTU(j.peer), whole)
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
					l.check(v.MTU(two) == l.fits(encap.TypeIPIP, 1500) && !v.Failed(two),
						"%s: MTU %d", name, v.MTU(two))
				}
				s.narrow(l.endpoint(9), 1400, bareIP(false)) // to a host that is no peer
				s.unreachable(l.endpoint(9), bareIP(false))
				l.check(v.MTU(two) == l.fits(encap.TypeIPIP, 1500) && v.MTU(three) == v.MTU(two) && !v.Failed(two) && !v.Failed(three),
					"MTU %d and %d", v.MTU(two), v.MTU(three))
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
	return pick(l.ip6, mtu-outer[0], mtu-outer[1])
}
