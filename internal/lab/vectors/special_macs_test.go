package vectors

import (
	"slices"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var specialRows = slices.Concat(bridgeGroup(), []row{
	{id: "5.group-entry", name: "to one port", wire: func(l *lab) {
		l.start(floods{2})
		a, b, _, _ := l.host(), l.host(), l.host(), l.far(2)
		l.set(mcast, b.At.Dest(0), fdb.Static)
		l.passes(a, eth(mcast, a.MAC, ""), b)
		l.quiet()
	}},
	{id: "5.group-entry", name: "to the flood list only", wire: func(l *lab) {
		l.start(floods{2, 3})
		a, b, f, g := l.host(), l.host(), l.far(2), l.far(3)
		l.set(mcast, l.tun.Dest(0), fdb.Control)
		x := eth(mcast, a.MAC, "")
		a.Send(x)
		b.Want()
		f.want(vx(vni, x))
		g.want(vx(vni, x))
	}},
	{id: "5.gateway", name: "consumed", wire: func(l *lab) {
		gw, n := frame.MAC{2, 0, 0x5e, 0, 0, 1}, 0
		l.start(&vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: stage(func(f *frame.Frame) frame.Verdict {
			n++
			return frame.Consume
		})}})
		l.flood(2)
		a, _, f := l.host(), l.host(), l.far(2)
		l.set(gw, 0, fdb.Static)
		a.Send(eth(gw, a.MAC, ""))
		f.send(vx(vni, eth(gw, rmac(1), "")))
		l.check(n == 2, "the gateway saw %d frames", n)
		l.clean()
		for _, p := range l.Stats().Ports {
			if want := uint64(1); (p.Port == a.At.Dest(0).Port() || p.Port == l.tun.Dest(0).Port()) && p.Consumed != want {
				l.T.Errorf("%s: %d consumed", p.Name, p.Consumed)
			}
		}
	}},
	{id: "5.gateway", name: "without a gateway: dropped, not flooded", wire: func(l *lab) {
		gw := frame.MAC{2, 0, 0x5e, 0, 0, 1}
		l.start(floods{2})
		a, _, _ := l.host(), l.host(), l.far(2)
		l.set(gw, 0, fdb.Static)
		a.Send(eth(gw, a.MAC, ""))
		l.dropped("no-route")
	}},
	{id: "5.reflect", name: "on its own port", local: func(l *lab) {
		a, b := l.bridged()
		a.Send(eth(nobody, rmac(1), ""))
		b.Got()
		a.Send(eth(rmac(1), rmac(2), ""))
		l.dropped("reflect")
	}},
	{id: "5.reflect", name: "behind its own peer", wire: func(l *lab) {
		h, f := l.pair()
		f.learnt(rmac(1))
		h.Got()
		f.send(vx(vni, eth(rmac(1), rmac(2), "")))
		l.dropped("reflect")
	}},
	{id: "5.reflect", name: "to itself", local: func(l *lab) {
		l.bridge()
		a := l.host()
		l.host()
		a.Send(eth(a.MAC, a.MAC, ""))
		l.drops(one("reflect"))
	}},
})

// bridgeGroup has each of the 16 addresses, from both sides, and their neighbours.
func bridgeGroup() (rows []row) {
	both := func(l *lab, dst frame.MAC) (forwarded bool) {
		l.flood(2)
		a, b, f := l.host(), l.host(), l.far(2)
		x, y := eth(dst, a.MAC, "out"), eth(dst, rmac(1), "in")
		a.Send(x)
		out := len(f.got())
		toB := len(b.Got())
		f.send(vx(vni, y))
		in := len(b.Got())
		l.check(in == out && toB == out, "%v: %d left by the tunnel, %d by a port, %d came in", dst, out, toB, in)
		return out == 1
	}
	on := &vswitch.VSIConfig{ForwardBridgeGroup: true}
	for i := range 16 {
		dst := frame.MAC{1, 0x80, 0xc2, 0, 0, byte(i)}
		rows = append(rows, row{id: "5.bridge-group", name: dst.String(), wire: func(l *lab) {
			l.start()
			l.check(!both(l, dst), "forwarded")
			l.drops(map[string]uint64{"reserved-mac": 2})
		}})
	}
	for _, dst := range []frame.MAC{{1, 0x80, 0xc2, 0, 0, 0x10}, {1, 0x80, 0xc1, 0xff, 0xff, 0xff}, {1, 0x80, 0xc2, 0, 1, 0}} {
		rows = append(rows, row{id: "5.bridge-group", name: "not " + dst.String(), wire: func(l *lab) {
			l.start()
			l.check(both(l, dst), "not forwarded")
			l.drops(nil)
		}})
	}
	for _, i := range []byte{0, 1, 2, 14, 15} {
		dst := frame.MAC{1, 0x80, 0xc2, 0, 0, i}
		rows = append(rows, row{id: "5.bridge-group-setting", name: dst.String(), wire: func(l *lab) {
			l.start(on)
			l.check(both(l, dst), "not forwarded")
			l.drops(nil)
		}})
	}
	return rows
}
