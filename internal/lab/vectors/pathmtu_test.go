package vectors

import (
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// pathRows are packets that a router on the way to one peer does not pass.
var pathRows = []row{
	{id: "9.path-mtu", name: "one peer of two", wire: func(l *lab) {
		h, f := l.narrow(1500)
		g := l.far(3)
		g.send(vx(vni, eth(h.MAC, rmac(2), "here")))
		h.Got()
		l.Net.SetLink(l.addr(1), l.addr(2), memory.Link{PathMTU: 1400})
		fits := l.inner(1400)
		// The first is lost on the way, and its error is told.
		h.Send(ip4(rmac(1), h.MAC, fits+1, udp4))
		l.quiet()
		in := ip4(rmac(1), h.MAC, fits+1, udp4)
		l.told(h, in, fits)
		f.want()
		in = ip4(rmac(1), h.MAC, fits, udp4)
		l.passes(h, in, f)
		in = ip4(rmac(2), h.MAC, l.inner(1500), udp4)
		l.passes(h, in, g)
		l.drops(map[string]uint64{})
	}},
	{id: "9.path-mtu", name: "a flooded frame reaches the others", wire: func(l *lab) {
		h, f := l.narrow(1500)
		g := l.far(3)
		l.flood(2, 3)
		l.Net.SetLink(l.addr(1), l.addr(2), memory.Link{PathMTU: 1400})
		in := ip4(mcast, h.MAC, l.inner(1400)+1, udp4)
		for range 2 { // not yet known, and known
			h.Send(in)
			f.want()
			g.want(vx(vni, in))
		}
		lost := l.VTEP.Stats().Lost
		l.check(lost.Total() == 1, "copies lost: %v", lost)
	}},
	{id: "9.flooded-families", name: "peers of one family", wire: func(l *lab) {
		h, v, f, _ := l.families()
		l.must(v.SetFlood(vni, l.at(2)))
		fits := l.inner(1500)
		in := ip4(frame.Broadcast, h.MAC, fits, udp4)
		h.Send(in, ip4(frame.Broadcast, h.MAC, fits+1, udp4))
		f.want(vx(vni, in))
		h.Want()
		in = ip4(nobody, h.MAC, fits, udp4)
		l.passes(h, in, f)
		h.Want()
		in = ip4(nobody, h.MAC, fits+1, udp4)
		h.Send(in)
		f.want()
		h.Want(answer(in, fits))
		l.drops(map[string]uint64{"too-big": 2})
		l.narrowFamily(v, 2, 1400)
		in = ip4(nobody, h.MAC, l.inner(1400)+1, udp4)
		h.Send(in)
		f.want()
		h.Want(answer(in, l.inner(1400)))
	}},
	{id: "9.flooded-families", name: "peers of both", wire: func(l *lab) {
		h, v, f, g := l.families()
		if l.ip6 {
			f, g = g, f
		}
		l.must(v.SetFlood(vni, f.u.LocalAddr(), g.u.LocalAddr()))
		in := ip4(frame.Broadcast, h.MAC, 1430, udp4)
		l.passes(h, in, f, g)
		for i, n := range []int{1431, 1450} {
			in := ip4(frame.Broadcast, h.MAC, n, udp4)
			l.passes(h, in, f)
			l.quiet()
			in = ip4(nobody, h.MAC, n, udp4)
			l.passes(h, in, f)
			g.want()
			h.Want(answer(in, 1430))
			lost := v.Stats().Lost
			l.check(lost[frame.TooBig] == uint64(2*i+2) && lost.Total() == lost[frame.TooBig], "copies lost: %v", lost)
		}
		l.drops(nil)
		h.Send(ip4(frame.Broadcast, h.MAC, 1451, udp4))
		l.dropped("too-big")
	}},
	{id: "9.path-mtu-age", name: "ten minutes", wire: func(l *lab) {
		h, f := l.narrow(1500)
		l.narrowPath(2, 1400, vx(vni, make([]byte, 1390)))
		in := ip4(rmac(1), h.MAC, l.inner(1500), udp4)
		l.must(l.seg.FDB().Set(rmac(1), l.dest(2), fdb.Static)) // or its entry would age first
		l.pass(vtep.PathMTUAge - time.Minute)
		l.told(h, in, l.inner(1400))
		l.pass(2 * time.Minute)
		l.passes(h, in, f)
	}},
	{id: "9.path-mtu-floor", name: "a router that lies", wire: func(l *lab) {
		l.narrow(1500)
		floor := pick(l.ip6, 576, 1280)
		l.narrowPath(2, 100, vx(vni, make([]byte, 800)))
		check.Equal(l.T, "MTU", l.VTEP.MTU(l.peer(2)), floor-l.outer())
	}},
	{id: "9.path-mtu-quoted", name: "packets that are not ours", wire: func(l *lab) {
		l.narrow(1500)
		whole, long := l.VTEP.MTU(l.peer(2)), make([]byte, 1390)
		for name, sent := range map[string][]byte{
			"another VNI": vx(77, long), "no I flag": header([8]byte{0, 0, 0, 0, 0, 0, vni, 0}, long),
			"reserved bits": header([8]byte{8, 1, 0, 0, 0, 0, vni, 0}, long),
		} {
			l.narrowPath(2, 1400, sent)
			got := l.VTEP.MTU(l.peer(2))
			l.check(got == whole, "%s: MTU %d", name, got)
		}
		l.narrowPath(2, 1400, vx(vni, long))
		got := l.VTEP.MTU(l.peer(2))
		l.check(got == 1400-l.outer(), "ours: MTU %d", got)
	}},
	{id: "9.path-mtu-quoted", name: "VXLAN-GPE that is not ours", wire: func(l *lab) {
		v, s, two, _ := l.spied(vtep.Config{Type: encap.TypeGPE})
		whole := v.MTU(two)
		for name, quoted := range map[string][]byte{
			"another VNI": gpe(77, 3, in1), "a version": header([8]byte{0x1c, 0, 0, 3, 0, 0, vni, 0}, in1),
			"no I flag": header([8]byte{0x04, 0, 0, 3, 0, 0, vni, 0}, in1), "another protocol": gpe(vni, 4, in1),
			"no P": header([8]byte{0x08, 0, 0, 3, 0, 0, vni, 0}, in1), "O": header([8]byte{0x0d, 0, 0, 3, 0, 0, vni, 0}, in1), "reserved bits": header([8]byte{0x0c, 1, 0, 3, 0, 0, vni, 0}, in1),
		} {
			s.narrow(l.endpoint(2), 1400, quoted)
			l.check(v.MTU(two) == whole, "%s: MTU %d", name, v.MTU(two))
		}
		for k, quoted := range [][]byte{gpe(vni, 3, in1), bum(vni, 3, in1), gpe(vni, 1, bareIP(false)), gpe(vni, 2, bareIP(true))} {
			mtu := 1400 - 10*k
			s.narrow(l.endpoint(2), mtu, quoted)
			l.check(v.MTU(two) == l.fits(encap.TypeGPE, mtu), "ours, % x: MTU %d", quoted[:8], v.MTU(two))
		}
	}},
}

// families starts a switch with a VTEP over both families, a jumbo host, and a far end of the lab's
// family and one of the other.
func (l *lab) families() (h *mem.Host, v *vtep.VTEP, f, g *far) {
	l.T.Helper()
	l.bridge()
	h = l.jumbo()
	o := *l
	o.ip6 = !l.ip6
	var us []vtep.Underlay
	for _, x := range []*lab{l, &o} {
		us = append(us, check.Must(x.Listen(x.addr(9), encap.TypeVXLAN))(l.T))
	}
	v = check.Must(vtep.New(nil, us...))(l.T)
	check.Must(l.seg.Attach(v, vni))(l.T)
	return h, v, l.far(2), o.far(2)
}

// narrowFamily has the router on the way from families' VTEP to a far end say what it passes.
func (l *lab) narrowFamily(v *vtep.VTEP, i byte, mtu int) {
	l.T.Helper()
	l.Net.SetLink(l.addr(9), l.addr(i), memory.Link{PathMTU: mtu})
	f := frame.Make(ip4(frame.Broadcast, rmac(1), mtu, udp4))
	l.must(v.Writer(1000).Write([]frame.Out{{F: &f, Tag: vni}}))
	l.Settle()
}

// outer is what the outer headers take.
func (l *lab) outer() int { return encap.TypeVXLAN.Outer(l.ip6) }

// narrowPath has the router on the way to a far end pass no packets above mtu, and refuse
// a payload that is sent by the switch's own underlay.
func (l *lab) narrowPath(i byte, mtu int, payload []byte) {
	l.T.Helper()
	l.Net.SetLink(l.addr(1), l.addr(i), memory.Link{PathMTU: mtu})
	e := check.Must(frame.EndpointFrom(l.at(i)))(l.T)
	l.must(l.Underlay.Sender(1000).Send([]frame.Datagram{{Parts: [][]byte{payload}, To: []frame.Endpoint{e}, DF: true}}))
	l.Settle()
	l.Net.SetLink(l.addr(1), l.addr(i), memory.Link{})
}
