package vectors

import (
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// stage is a slot's stage made of a function.
type stage func(f *frame.Frame) frame.Verdict

func (s stage) Process(f *frame.Frame, _ frame.At) frame.Verdict { return s(f) }

var horizonRows = []row{
	{id: "5.back", name: "known, to its own port", local: func(l *lab) {
		a, b := l.bridged()
		a.Send(eth(nobody, rmac(1), ""))
		b.Got()
		a.Send(eth(rmac(1), rmac(2), ""))
		l.quiet()
	}},
	{id: "5.back", name: "flooded, from a port", wire: func(l *lab) {
		a, f := l.pair(floods{2})
		x := eth(frame.Broadcast, a.MAC, "")
		a.Send(x)
		a.Want()
		f.want(vx(vni, x))
	}},
	{id: "5.back", name: "flooded, from a hub's peer", wire: func(l *lab) {
		l.start(vswitch.AttachConfig{Hub: true}, floods{2, 3})
		f, g := l.far(2), l.far(3)
		x := eth(frame.Broadcast, rmac(1), "")
		f.send(vx(vni, x))
		f.want()
		g.want(vx(vni, x))
	}},
	{id: "5.mesh-unicast", name: "peer to peer", wire: func(l *lab) {
		h, f, g := l.trio()
		g.learnt(rmac(2))
		h.Got()
		f.send(vx(vni, eth(rmac(2), rmac(1), "")))
		l.dropped("split-horizon")
	}},
	{id: "5.mesh-unicast", name: "to a static entry", wire: func(l *lab) {
		l.start()
		f, _ := l.far(2), l.far(3)
		l.set(rmac(2), l.listed(3), fdb.Static)
		f.send(vx(vni, eth(rmac(2), rmac(1), "")))
		l.dropped("split-horizon")
	}},
	{id: "5.split-horizon-group", name: "two VTEPs", wire: func(l *lab) {
		l.start()
		l.join(200)
		old, _ := l.oldVTEP()
		l.must(old.SetFlood(200, netip.AddrPortFrom(l.addr(3), 0)))
		h, f, g := l.Host(200), l.far(2), l.farAt(netip.AddrPortFrom(l.addr(3), 8472), nil)
		x := eth(frame.Broadcast, rmac(1), "")
		f.send(vx(200, x))
		h.Want(x)
		g.want()
		g.sendTo(netip.AddrPortFrom(l.addr(1), 8472), vx(200, eth(rmac(1), rmac(2), "known")))
		l.dropped("split-horizon")
	}},
	{id: "5.split-horizon-group", name: "any number", local: func(l *lab) {
		l.bridge()
		seven := vswitch.AttachConfig{Group: 7}
		a, b, c, d := l.HostWith(vni, 0, seven), l.HostWith(vni, 0, seven), l.HostWith(vni, 0, vswitch.AttachConfig{Group: 8}), l.host()
		x := eth(frame.Broadcast, a.MAC, "")
		a.Send(x)
		b.Want()
		c.Want(x)
		d.Want(x)
		b.Send(eth(a.MAC, b.MAC, "known"))
		l.dropped("split-horizon")
		l.passes(c, eth(a.MAC, c.MAC, "known, other group"), a)
	}},
	{id: "5.split-horizon-group", name: "zero is none", local: func(l *lab) {
		a, b := l.bridged()
		x, y := eth(frame.Broadcast, a.MAC, ""), eth(a.MAC, b.MAC, "")
		l.passes(a, x, b)
		l.passes(b, y, a)
		l.drops(nil)
	}},
	{id: "5.split-horizon-group", name: "a port in the tunnels' group", wire: func(l *lab) {
		l.start(floods{2})
		a, b, f := l.HostWith(vni, 0, vswitch.AttachConfig{Group: vswitch.GroupTunnel}), l.host(), l.far(2)
		l.passes(a, eth(frame.Broadcast, a.MAC, ""), b)
		f.want()
		y := eth(frame.Broadcast, rmac(1), "")
		f.send(vx(vni, y))
		a.Want()
		b.Want(y)
	}},
	{id: "5.split-horizon-group", name: "changed under traffic", local: func(l *lab) {
		a, b := l.bridged()
		x := eth(frame.Broadcast, a.MAC, "")
		l.passes(a, x, b)
		l.must(a.At.Configure(vswitch.AttachConfig{Group: 9}))
		l.must(b.At.Configure(vswitch.AttachConfig{Group: 9}))
		a.Send(x)
		l.dropped("no-egress")
	}},
	{id: "5.isolated", name: "floods and known unicast", wire: func(l *lab) {
		l.start(floods{2})
		iso := vswitch.AttachConfig{Group: vswitch.GroupIsolated}
		a, b, c, f := l.HostWith(vni, 0, iso), l.HostWith(vni, 0, iso), l.host(), l.far(2)
		x := eth(frame.Broadcast, a.MAC, "")
		a.Send(x)
		b.Want()
		c.Want(x)
		f.want(vx(vni, x))
		b.Send(eth(a.MAC, b.MAC, ""))
		l.dropped("split-horizon")
		y, z := eth(a.MAC, c.MAC, "from a common port"), eth(a.MAC, rmac(1), "from a peer")
		c.Send(y)
		f.send(vx(vni, z))
		a.Want(y, z)
		f.want()
	}},
	{id: "5.hub", name: "from a peer that is not in the list", wire: func(l *lab) {
		l.start(vswitch.AttachConfig{Hub: true}, floods{2, 3})
		f, g, s := l.far(2), l.far(3), l.far(4)
		l.passes(s, eth(frame.Broadcast, rmac(1), ""), f, g)
		s.want()
	}},
	{id: "5.hub", name: "from the only peer", wire: func(l *lab) {
		h, f := l.pair(vswitch.AttachConfig{Hub: true}, floods{2})
		l.passes(f, eth(frame.Broadcast, rmac(1), ""), h)
		f.want()
	}},
	{id: "5.hub", name: "from a port: all peers", wire: func(l *lab) {
		h, f, g := l.trio(vswitch.AttachConfig{Hub: true}, floods{2, 3})
		l.passes(h, eth(frame.Broadcast, h.MAC, ""), f, g)
		h.Want()
	}},
	{id: "5.hub-unicast", name: "peer to peer", wire: func(l *lab) {
		l.start(vswitch.AttachConfig{Hub: true}, floods{2, 3, 4})
		fs := l.fars(2, 4)
		fs[1].learnt(rmac(2))
		l.forget()
		x := eth(rmac(2), rmac(1), "")
		fs[0].send(vx(vni, x))
		fs[0].want()
		fs[1].want(vx(vni, x))
		l.clean()
	}},
	{id: "5.hub-unicast", name: "not back to the same peer", wire: func(l *lab) {
		l.start(vswitch.AttachConfig{Hub: true})
		f := l.far(2)
		f.learnt(rmac(2))
		f.send(vx(vni, eth(rmac(2), rmac(1), "")))
		l.dropped("reflect", "no-peer")
	}},
	{id: "5.routed", name: "from a peer to another", wire: func(l *lab) {
		l.start(routingTo(rmac(2)))
		f, g := l.far(2), l.far(3)
		l.set(gwMAC, 0, fdb.Static)
		g.learnt(rmac(2))
		f.send(vx(vni, eth(gwMAC, rmac(1), "routed")))
		g.want(vx(vni, eth(rmac(2), gwMAC, "routed")))
		f.send(vx(vni, eth(nobody, rmac(3), "not for the gateway")))
		l.quiet()
	}},
	{id: "5.routed", name: "back to where it came from", wire: func(l *lab) {
		l.start(routingTo(rmac(1)))
		f := l.far(2)
		l.set(gwMAC, 0, fdb.Static)
		f.send(vx(vni, eth(gwMAC, rmac(1), "ping")))
		f.want(vx(vni, eth(rmac(1), gwMAC, "ping")))
		l.clean()
	}},
}

// routingTo is a gateway that routes every frame for its MAC to a host in the same segment.
func routingTo(host frame.MAC) *vswitch.VSIConfig {
	return &vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: stage(func(f *frame.Frame) frame.Verdict {
		if frame.MAC(f.Bytes()) != gwMAC {
			return frame.Continue
		}
		copy(f.Bytes(), slices.Concat(host[:], gwMAC[:]))
		return frame.Reenter
	})}}
}

// isolatedRows are packets that an isolated port sends to another by way of the gateway.
func isolatedRows() (rows []row) {
	type hosts struct {
		*site
		c, d, e *mem.Host // isolated: two in VNI 100, and one in VNI 200
	}
	start := func(l *lab, v6, allowed bool) *hosts {
		l.T.Helper()
		s := &hosts{site: l.site(v6, false)}
		iso := vswitch.AttachConfig{Group: vswitch.GroupIsolated}
		s.c, s.d, s.e = s.HostWith(vni, 0, iso), s.HostWith(vni, 0, iso), s.HostWith(vni2, 0, iso)
		s.c.IP, s.d.IP, s.e.IP = s.ip(vni, 11), s.ip(vni, 12), s.ip(vni2, 13)
		s.configure(vni, func(c *node.Segment) { c.RouteIsolated = allowed })
		for _, h := range []*mem.Host{s.c, s.e} {
			h.Send(here(h.MAC, h.IP))
		}
		l.forget()
		return s
	}
	for _, allowed := range []bool{false, true} {
		name := pick(allowed, "refused", "allowed")
		want := func(l *lab, s *hosts, n uint64, bs ...[]byte) {
			l.T.Helper()
			if allowed {
				s.d.Want(bs...)
				l.drops(nil)
			} else {
				s.d.Want()
				l.drops(map[string]uint64{"isolated": n})
			}
		}
		rows = append(rows, inside("5.isolated-routed", name+", to a known host", func(l *lab, v6 bool) {
			s := start(l, v6, allowed)
			s.d.Send(here(s.d.MAC, s.d.IP))
			l.forget()
			p := packetOf(s.c.MAC, s.c.IP, gwMAC, s.d.IP)
			s.c.Send(p.bytes())
			want(l, s, 1, p.routed(gwMAC, s.d.MAC).bytes())
			// Others are reached, and reach it, in its segment and in another.
			for _, to := range []*mem.Host{s.a, s.b, s.e} {
				p := packetOf(s.c.MAC, s.c.IP, gwMAC, to.IP)
				s.c.Send(p.bytes())
				p.reaches(to)
				p = packetOf(to.MAC, to.IP, gwMAC, s.c.IP)
				to.Send(p.bytes())
				p.reaches(s.c)
			}
		})...)
		rows = append(rows, inside("5.isolated-routed", name+", after a question", func(l *lab, v6 bool) {
			s := start(l, v6, allowed)
			p := packetOf(s.c.MAC, s.c.IP, gwMAC, s.d.IP)
			s.c.Send(p.bytes())
			q := whoHas(s.d.IP, gwMAC, asker(v6, gwMAC, vni))
			s.d.Want(q.bytes())
			s.d.Send(isAt(q, s.d.MAC).bytes())
			want(l, s, 1, p.routed(gwMAC, s.d.MAC).bytes())
		})...)
		rows = append(rows, inside("5.isolated-routed", name+", to nobody: it is told so", func(l *lab, v6 bool) {
			s := start(l, v6, allowed)
			s.c.Send(packetOf(s.c.MAC, s.c.IP, gwMAC, s.ip(vni, 77)).bytes())
			l.forget()
			l.pass(5 * time.Second)
			s.d.Got()
			told := 0
			for _, b := range s.c.Got() {
				if frame.MAC(b) == s.c.MAC {
					told++
				}
			}
			l.check(told == 1, "told %d times", told)
		})...)
		rows = append(rows, row{id: "5.isolated-routed", name: name + ", in pieces, flooded", wire: func(l *lab) {
			s := start(l, false, allowed)
			s.d.Send(here(s.d.MAC, s.d.IP))
			small := port.NewPipe(&port.PipeConfig{MTU: 700})
			check.Must(s.Segment(vni).Attach(small, 0))(l.T)
			s.Segment(vni).Flush()
			l.forget()
			p := packetOf(s.c.MAC, s.c.IP, gwMAC, s.d.IP).long(1000)
			p.df = false
			s.c.Send(p.bytes())
			p = p.routed(gwMAC, s.d.MAC)
			if pieces := p.pieces(700 - 14); allowed {
				s.d.Want(append([][]byte{p.bytes()}, pieces...)...)
			} else {
				s.d.Want()
			}
			n := len(s.a.Got())
			l.check(n >= 2, "%d frames flooded to a port that is not isolated", n)
		}})
	}
	return rows
}
