package vectors

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
)

// class is one of the classes of flooded frames, as a row meets it.
type class struct {
	name string
	dst  frame.MAC
	bit  vswitch.Class
	drop string
}

var classes = []class{
	{"broadcast", frame.Broadcast, vswitch.Broadcast, "broadcast-off"},
	{"multicast", mcast, vswitch.Multicast, "multicast-off"},
	{"unknown", nobody, vswitch.UnknownUnicast, "unknown-unicast-off"},
}

// counted returns the counters of floods, of a port and of VNI 100.
func (l *lab) counted(port frame.Dest) (p, v vswitch.Flooded) {
	st := l.Stats()
	for _, x := range st.Ports {
		if x.Port == port.Port() {
			p = x.Flood
		}
	}
	for _, x := range st.VSIs {
		if x.VNI == vni {
			v = x.Flood
		}
	}
	return p, v
}

func (c *class) counter() (f vswitch.Flooded) {
	switch c.bit {
	case vswitch.Broadcast:
		f.Broadcast = 1
	case vswitch.Multicast:
		f.Multicast = 1
	default:
		f.Unknown = 1
	}
	return f
}

var floodRows = slices.Concat(perClass(), []row{
	{id: "5.known", name: "port to port", wire: func(l *lab) {
		l.std()
		l.flood(2)
		a, b, c, f := l.host(), l.host(), l.host(), l.far(2)
		b.Send(eth(a.MAC, b.MAC, "here"))
		a.Got()
		c.Got()
		f.got()
		x := eth(b.MAC, a.MAC, "to b alone")
		a.Send(x)
		b.Want(x)
		c.Want()
		f.want()
		l.drops(nil)
	}},
	{id: "5.known", name: "port to peer", wire: func(l *lab) {
		l.std()
		l.flood(2, 3)
		h, o, f, g := l.host(), l.host(), l.far(2), l.far(3)
		f.learnt(rmac(1))
		h.Got()
		o.Got()
		x := eth(rmac(1), h.MAC, "to 2 alone")
		h.Send(x)
		f.want(vx(vni, x))
		g.want()
		o.Want()
		l.drops(nil)
	}},
	{id: "5.known", name: "peer to port", wire: func(l *lab) {
		l.std()
		l.flood(2, 3)
		h, o, f, g := l.host(), l.host(), l.far(2), l.far(3)
		h.Send(eth(nobody, h.MAC, "here"))
		f.got()
		g.got()
		o.Got()
		x := eth(h.MAC, rmac(1), "to h alone")
		f.send(vx(vni, x))
		h.Want(x)
		o.Want()
		g.want()
		l.drops(nil)
	}},
})

// perClass is what holds for each class alike.
func perClass() (rows []row) {
	for _, c := range classes {
		id := "5." + c.name
		rows = append(rows, row{id: id, name: "from a port", wire: func(l *lab) {
			l.std()
			l.flood(2, 3)
			a, b, d, f, g := l.host(), l.host(), l.host(), l.far(2), l.far(3)
			x := eth(c.dst, a.MAC, "to all")
			a.Send(x)
			a.Want()
			b.Want(x)
			d.Want(x)
			f.want(vx(vni, x))
			g.want(vx(vni, x))
			l.drops(nil)
		}}, row{id: id, name: "from a tunnel", wire: func(l *lab) {
			l.std()
			l.flood(2, 3)
			a, b, f, g := l.host(), l.host(), l.far(2), l.far(3)
			x := eth(c.dst, rmac(1), "to all")
			f.send(vx(vni, x))
			a.Want(x)
			b.Want(x)
			f.want()
			g.want()
			l.drops(nil)
		}}, row{id: id, name: "in its own segment only", wire: func(l *lab) {
			l.std()
			l.join(200)
			l.flood(2)
			l.must(l.VTEP.SetFlood(200, l.at(3)))
			a, o, f, g := l.host(), l.Host(200), l.far(2), l.far(3)
			x := eth(c.dst, a.MAC, "")
			a.Send(x)
			o.Want()
			f.want(vx(vni, x))
			g.want()
		}}, row{id: id, name: "nobody else there", local: func(l *lab) {
			l.bridge(nil, nil)
			a := l.host()
			a.Send(eth(c.dst, a.MAC, ""))
			l.drops(one("no-egress"))
		}}, row{id: "5.class-off", name: c.name + " from a port", wire: func(l *lab) {
			l.start(nil, nil, &vswitch.VSIConfig{NoFlood: c.bit}, vswitch.AttachConfig{})
			l.flood(2)
			a, b, f := l.host(), l.host(), l.far(2)
			a.Send(eth(c.dst, a.MAC, ""))
			b.Want()
			f.want()
			l.drops(one(c.drop))
			l.wantFDB(l.seg, table{a.MAC: a.At.Dest(0)}) // learned all the same
			for _, o := range classes {
				if o.bit != c.bit {
					x := eth(o.dst, a.MAC, o.name)
					a.Send(x)
					b.Want(x)
					f.want(vx(vni, x))
				}
			}
			l.drops(one(c.drop))
		}}, row{id: "5.class-off", name: c.name + " from a tunnel", wire: func(l *lab) {
			l.start(nil, nil, &vswitch.VSIConfig{NoFlood: c.bit}, vswitch.AttachConfig{})
			b, f := l.host(), l.far(2)
			f.send(vx(vni, eth(c.dst, rmac(1), "")))
			b.Want()
			l.drops(one(c.drop))
		}}, row{id: "5.class-off", name: c.name + " at run time", wire: func(l *lab) {
			l.std()
			a, b := l.host(), l.host()
			x := eth(c.dst, a.MAC, "")
			l.flood(2)
			a.Send(x)
			b.Want(x)
			l.must(l.seg.Configure(vswitch.VSIConfig{NoFlood: c.bit}))
			a.Send(x)
			b.Want()
			l.must(l.seg.Configure(vswitch.VSIConfig{}))
			a.Send(x)
			b.Want(x)
			l.drops(one(c.drop))
		}}, row{id: "5.class-off-attachment", name: c.name + " of a port", wire: func(l *lab) {
			l.std()
			l.flood(2)
			a, b, o, f := l.host(), l.HostWith(vni, 0, vswitch.AttachConfig{NoFlood: c.bit}), l.host(), l.far(2)
			for _, k := range classes {
				x := eth(k.dst, a.MAC, k.name)
				a.Send(x)
				o.Want(x)
				f.want(vx(vni, x))
				if k.bit == c.bit {
					b.Want()
				} else {
					b.Want(x)
				}
			}
			l.drops(nil)
		}}, row{id: "5.class-off-attachment", name: c.name + " of the tunnel", wire: func(l *lab) {
			l.start(nil, nil, nil, vswitch.AttachConfig{NoFlood: c.bit})
			l.flood(2)
			a, b, f := l.host(), l.host(), l.far(2)
			x := eth(c.dst, a.MAC, "")
			a.Send(x)
			b.Want(x)
			f.want()
			l.must(l.tun.Configure(vswitch.AttachConfig{}))
			a.Send(x)
			b.Want(x)
			f.want(vx(vni, x))
		}}, row{id: "5.class-counted", name: c.name + " from a port", wire: func(l *lab) {
			l.std()
			l.flood(2, 3, 4)
			a := l.host()
			l.host()
			a.Send(eth(c.dst, a.MAC, ""))
			l.Settle()
			if p, v := l.counted(a.At.Dest(0)); p != c.counter() || v != c.counter() {
				l.T.Errorf("port %+v, segment %+v", p, v)
			}
		}}, row{id: "5.class-counted", name: c.name + " from a tunnel", wire: func(l *lab) {
			l.std()
			l.host()
			l.host()
			l.far(2).send(vx(vni, eth(c.dst, rmac(1), "")))
			if p, v := l.counted(l.tun.Dest(0)); p != c.counter() || v != c.counter() {
				l.T.Errorf("port %+v, segment %+v", p, v)
			}
		}}, row{id: "5.class-counted", name: c.name + " dropped is no flood", wire: func(l *lab) {
			l.start(nil, nil, &vswitch.VSIConfig{NoFlood: c.bit}, vswitch.AttachConfig{})
			l.host()
			l.far(2).send(vx(vni, eth(c.dst, rmac(1), "")))
			if p, v := l.counted(l.tun.Dest(0)); p != (vswitch.Flooded{}) || v != (vswitch.Flooded{}) {
				l.T.Errorf("port %+v, segment %+v", p, v)
			}
		}}, row{id: "5.mesh-bum", name: c.name, wire: func(l *lab) {
			l.std()
			l.flood(2, 3, 4)
			h, fs := l.host(), l.fars(2, 4)
			x := eth(c.dst, rmac(1), "")
			fs[0].send(vx(vni, x))
			h.Want(x)
			for _, f := range fs {
				f.want()
			}
			l.drops(nil)
		}}, row{id: "5.hub", name: c.name, wire: func(l *lab) {
			l.start(nil, nil, nil, vswitch.AttachConfig{Hub: true})
			l.flood(2, 3, 4)
			h, fs := l.host(), l.fars(2, 4)
			x := eth(c.dst, rmac(1), "")
			fs[1].send(vx(vni, x))
			h.Want(x)
			fs[0].want(vx(vni, x))
			fs[1].want()
			fs[2].want(vx(vni, x))
			l.drops(nil)
		}})
	}
	return rows
}

// stage is a slot's stage made of a function.
type stage func(f *frame.Frame) frame.Verdict

func (s stage) Process(f *frame.Frame, _ frame.At) frame.Verdict { return s(f) }

var horizonRows = []row{
	{id: "5.back", name: "known, to its own port", local: func(l *lab) {
		l.bridge(nil, nil)
		a, b := l.host(), l.host()
		a.Send(eth(nobody, rmac(1), ""))
		b.Got()
		a.Send(eth(rmac(1), rmac(2), ""))
		a.Want()
		b.Want()
	}},
	{id: "5.back", name: "flooded, from a port", wire: func(l *lab) {
		l.std()
		l.flood(2)
		a, f := l.host(), l.far(2)
		x := eth(frame.Broadcast, a.MAC, "")
		a.Send(x)
		a.Want()
		f.want(vx(vni, x))
	}},
	{id: "5.back", name: "flooded, from a hub's peer", wire: func(l *lab) {
		l.start(nil, nil, nil, vswitch.AttachConfig{Hub: true})
		l.flood(2, 3)
		f, g := l.far(2), l.far(3)
		x := eth(frame.Broadcast, rmac(1), "")
		f.send(vx(vni, x))
		f.want()
		g.want(vx(vni, x))
	}},
	{id: "5.mesh-unicast", name: "peer to peer", wire: func(l *lab) {
		l.std()
		h, f, g := l.host(), l.far(2), l.far(3)
		g.learnt(rmac(2))
		h.Got()
		f.send(vx(vni, eth(rmac(2), rmac(1), "")))
		h.Want()
		f.want()
		g.want()
		l.drops(one("split-horizon"))
	}},
	{id: "5.mesh-unicast", name: "to a static entry", wire: func(l *lab) {
		l.std()
		f, g := l.far(2), l.far(3)
		n, err := l.VTEP.AddPeer(l.at(3))
		l.must(err)
		l.must(l.seg.FDB().Set(rmac(2), l.tun.Dest(n), fdb.Static))
		f.send(vx(vni, eth(rmac(2), rmac(1), "")))
		g.want()
		l.drops(one("split-horizon"))
	}},
	{id: "5.split-horizon-group", name: "two VTEPs", wire: func(l *lab) {
		l.std()
		l.join(200)
		old, _ := l.oldVTEP()
		l.must(old.SetFlood(200, netip.AddrPortFrom(l.addr(3), 0)))
		h, f, g := l.Host(200), l.far(2), l.farAt(netip.AddrPortFrom(l.addr(3), 8472), nil)
		x := eth(frame.Broadcast, rmac(1), "")
		f.send(vx(200, x))
		h.Want(x)
		g.want()
		g.sendTo(netip.AddrPortFrom(l.addr(1), 8472), vx(200, eth(rmac(1), rmac(2), "known")))
		f.want()
		l.drops(one("split-horizon"))
	}},
	{id: "5.split-horizon-group", name: "any number", local: func(l *lab) {
		l.bridge(nil, nil)
		seven := vswitch.AttachConfig{Group: 7}
		a, b, c, d := l.HostWith(vni, 0, seven), l.HostWith(vni, 0, seven), l.HostWith(vni, 0, vswitch.AttachConfig{Group: 8}), l.host()
		x := eth(frame.Broadcast, a.MAC, "")
		a.Send(x)
		b.Want()
		c.Want(x)
		d.Want(x)
		b.Send(eth(a.MAC, b.MAC, "known"))
		a.Want()
		l.drops(one("split-horizon"))
		y := eth(a.MAC, c.MAC, "known, other group")
		c.Send(y)
		a.Want(y)
	}},
	{id: "5.split-horizon-group", name: "zero is none", local: func(l *lab) {
		l.bridge(nil, nil)
		a, b := l.host(), l.host()
		x, y := eth(frame.Broadcast, a.MAC, ""), eth(a.MAC, b.MAC, "")
		a.Send(x)
		b.Want(x)
		b.Send(y)
		a.Want(y)
		l.drops(nil)
	}},
	{id: "5.split-horizon-group", name: "a port in the tunnels' group", wire: func(l *lab) {
		l.std()
		l.flood(2)
		a, b, f := l.HostWith(vni, 0, vswitch.AttachConfig{Group: vswitch.GroupTunnel}), l.host(), l.far(2)
		x := eth(frame.Broadcast, a.MAC, "")
		a.Send(x)
		b.Want(x)
		f.want()
		y := eth(frame.Broadcast, rmac(1), "")
		f.send(vx(vni, y))
		a.Want()
		b.Want(y)
	}},
	{id: "5.split-horizon-group", name: "changed under traffic", local: func(l *lab) {
		l.bridge(nil, nil)
		a, b := l.host(), l.host()
		x := eth(frame.Broadcast, a.MAC, "")
		a.Send(x)
		b.Want(x)
		l.must(a.At.Configure(vswitch.AttachConfig{Group: 9}))
		l.must(b.At.Configure(vswitch.AttachConfig{Group: 9}))
		a.Send(x)
		b.Want()
		l.drops(one("no-egress"))
	}},
	{id: "5.isolated", name: "floods and known unicast", wire: func(l *lab) {
		l.std()
		l.flood(2)
		iso := vswitch.AttachConfig{Group: vswitch.GroupIsolated}
		a, b, c, f := l.HostWith(vni, 0, iso), l.HostWith(vni, 0, iso), l.host(), l.far(2)
		x := eth(frame.Broadcast, a.MAC, "")
		a.Send(x)
		b.Want()
		c.Want(x)
		f.want(vx(vni, x))
		b.Send(eth(a.MAC, b.MAC, ""))
		a.Want()
		l.drops(one("split-horizon"))
		y, z := eth(a.MAC, c.MAC, "from a common port"), eth(a.MAC, rmac(1), "from a peer")
		c.Send(y)
		f.send(vx(vni, z))
		a.Want(y, z)
		f.want()
	}},
	{id: "5.hub", name: "from a peer that is not in the list", wire: func(l *lab) {
		l.start(nil, nil, nil, vswitch.AttachConfig{Hub: true})
		l.flood(2, 3)
		f, g, s := l.far(2), l.far(3), l.far(4)
		x := eth(frame.Broadcast, rmac(1), "")
		s.send(vx(vni, x))
		f.want(vx(vni, x))
		g.want(vx(vni, x))
		s.want()
	}},
	{id: "5.hub", name: "from the only peer", wire: func(l *lab) {
		l.start(nil, nil, nil, vswitch.AttachConfig{Hub: true})
		l.flood(2)
		h, f := l.host(), l.far(2)
		x := eth(frame.Broadcast, rmac(1), "")
		f.send(vx(vni, x))
		h.Want(x)
		f.want()
	}},
	{id: "5.hub", name: "from a port: all peers", wire: func(l *lab) {
		l.start(nil, nil, nil, vswitch.AttachConfig{Hub: true})
		l.flood(2, 3)
		h, f, g := l.host(), l.far(2), l.far(3)
		x := eth(frame.Broadcast, h.MAC, "")
		h.Send(x)
		f.want(vx(vni, x))
		g.want(vx(vni, x))
		h.Want()
	}},
	{id: "5.hub-unicast", name: "peer to peer", wire: func(l *lab) {
		l.start(nil, nil, nil, vswitch.AttachConfig{Hub: true})
		l.flood(2, 3, 4)
		fs := l.fars(2, 4)
		fs[1].learnt(rmac(2))
		fs[0].got()
		fs[2].got()
		x := eth(rmac(2), rmac(1), "")
		fs[0].send(vx(vni, x))
		fs[0].want()
		fs[1].want(vx(vni, x))
		fs[2].want()
		l.drops(nil)
	}},
	{id: "5.hub-unicast", name: "not back to the same peer", wire: func(l *lab) {
		l.start(nil, nil, nil, vswitch.AttachConfig{Hub: true})
		f := l.far(2)
		f.learnt(rmac(2))
		f.send(vx(vni, eth(rmac(2), rmac(1), "")))
		f.want()
		l.drops(map[string]uint64{"reflect": 1, "no-peer": 1})
	}},
	{id: "5.routed", name: "from a peer to another", wire: func(l *lab) {
		gw := frame.MAC{2, 0, 0x5e, 0, 0, 1}
		l.start(nil, nil, &vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: stage(func(f *frame.Frame) frame.Verdict {
			b := f.Bytes()
			if frame.MAC(b) != gw {
				return frame.Continue
			}
			m := rmac(2)
			copy(b, m[:])
			copy(b[6:], gw[:])
			return frame.Reenter
		})}}, vswitch.AttachConfig{})
		f, g := l.far(2), l.far(3)
		l.must(l.seg.FDB().Set(gw, 0, fdb.Static))
		g.learnt(rmac(2))
		f.send(vx(vni, eth(gw, rmac(1), "routed")))
		g.want(vx(vni, eth(rmac(2), gw, "routed")))
		f.want()
		f.send(vx(vni, eth(nobody, rmac(3), "not for the gateway")))
		g.want()
	}},
	{id: "5.routed", name: "back to where it came from", wire: func(l *lab) {
		gw := frame.MAC{2, 0, 0x5e, 0, 0, 1}
		l.start(nil, nil, &vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: stage(func(f *frame.Frame) frame.Verdict {
			b := f.Bytes()
			if frame.MAC(b) != gw {
				return frame.Continue
			}
			copy(b, b[6:12])
			copy(b[6:], gw[:])
			return frame.Reenter
		})}}, vswitch.AttachConfig{})
		f := l.far(2)
		l.must(l.seg.FDB().Set(gw, 0, fdb.Static))
		f.send(vx(vni, eth(gw, rmac(1), "ping")))
		f.want(vx(vni, eth(rmac(1), gw, "ping")))
		l.drops(nil)
	}},
}

var replicationRows = []row{
	{id: "5.replication", name: "ten peers", wire: func(l *lab) {
		l.std()
		l.flood(2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
		h, fs := l.host(), l.fars(2, 11)
		var want [][]byte
		for i := range 5 {
			x := eth(frame.Broadcast, h.MAC, fmt.Sprint(i))
			h.Send(x)
			want = append(want, vx(vni, x))
		}
		for _, f := range fs {
			f.want(want...)
		}
		for _, p := range l.VTEP.Stats().Peers {
			if p.Tx != 5 {
				l.T.Errorf("%v: %d sent", p.Addr, p.Tx)
			}
		}
	}},
	{id: "5.replication", name: "of that VNI", wire: func(l *lab) {
		l.std()
		l.join(200)
		l.flood(2, 3)
		l.must(l.VTEP.SetFlood(200, l.at(3), l.at(4)))
		h, o, fs := l.host(), l.Host(200), l.fars(2, 4)
		x, y := eth(frame.Broadcast, h.MAC, ""), eth(frame.Broadcast, o.MAC, "")
		h.Send(x)
		o.Send(y)
		fs[0].want(vx(100, x))
		fs[1].want(vx(100, x), vx(200, y))
		fs[2].want(vx(200, y))
	}},
	{id: "5.replication", name: "a batch at once", wire: func(l *lab) {
		l.std()
		l.flood(2, 3)
		h, f, g := l.host(), l.far(2), l.far(3)
		var want [][]byte
		for i := range 100 {
			x := eth(frame.Broadcast, h.MAC, fmt.Sprint(i))
			l.must(h.Pipe.Send(x))
			want = append(want, vx(vni, x))
		}
		f.want(want...)
		g.want(want...)
	}},
	{id: "5.replication", name: "nobody listed", wire: func(l *lab) {
		l.std()
		h, o := l.host(), l.host()
		x := eth(frame.Broadcast, h.MAC, "")
		h.Send(x)
		o.Want(x)
		l.drops(one("no-peer"))
	}},
	{id: "5.replication-unique", name: "repetitions", wire: func(l *lab) {
		l.std()
		l.flood(2, 3, 2, 2, 3)
		h, f, g := l.host(), l.far(2), l.far(3)
		x := eth(frame.Broadcast, h.MAC, "")
		h.Send(x)
		f.want(vx(vni, x))
		g.want(vx(vni, x))
	}},
	{id: "5.replication-unique", name: "with and without the port", wire: func(l *lab) {
		l.std()
		l.must(l.VTEP.SetFlood(vni, netip.AddrPortFrom(l.addr(2), 0), l.at(2)))
		h, f := l.host(), l.far(2)
		x := eth(frame.Broadcast, h.MAC, "")
		h.Send(x)
		f.want(vx(vni, x))
	}},
	{id: "5.replication-unique", name: "IPv4 in IPv6 form", only: "IPv4", wire: func(l *lab) {
		l.std()
		mapped := netip.AddrPortFrom(netip.AddrFrom16(l.addr(2).As16()), encap.VXLANPort)
		l.must(l.VTEP.SetFlood(vni, l.at(2), mapped))
		h, f := l.host(), l.far(2)
		x := eth(frame.Broadcast, h.MAC, "")
		h.Send(x)
		f.want(vx(vni, x))
	}},
	{id: "5.replication-own", name: "in the middle", wire: func(l *lab) {
		l.std()
		l.flood(2, 1, 3)
		h, f, g := l.host(), l.far(2), l.far(3)
		x := eth(frame.Broadcast, h.MAC, "")
		h.Send(x)
		f.want(vx(vni, x))
		g.want(vx(vni, x))
		h.Want()
		l.drops(nil)
	}},
	{id: "5.replication-own", name: "alone", wire: func(l *lab) {
		l.std()
		l.flood(1)
		h := l.host()
		h.Send(eth(frame.Broadcast, h.MAC, ""))
		h.Want()
		l.drops(one("no-peer"))
	}},
	unreachableRow("cut link", func(l *lab, f *far) { l.Net.Partition(l.addr(1), l.addr(3)) }),
	unreachableRow("nobody listens", func(l *lab, f *far) { f.u.Close() }),
	unreachableRow("path too narrow", func(l *lab, f *far) { l.Net.SetLink(l.addr(1), l.addr(3), underlay.Link{MTU: 80}) }),
	unreachableRow("slow", func(l *lab, f *far) { l.Net.SetLink(l.addr(1), l.addr(3), underlay.Link{Delay: time.Hour, Cut: true}) }),
	{id: "5.replication-order", name: "one in the middle goes", wire: func(l *lab) {
		l.std()
		l.flood(6, 2, 5, 3, 4)
		h := l.host()
		fs := l.fars(2, 6)
		wantOrder := func(list ...byte) {
			l.T.Helper()
			var want []netip.AddrPort
			for _, i := range list {
				want = append(want, l.at(i))
			}
			if got := l.VTEP.Flood(vni); !slices.Equal(got, want) {
				l.T.Errorf("flood list %v, want %v", got, want)
			}
		}
		wantOrder(6, 2, 5, 3, 4)
		l.flood(6, 2, 3, 4)
		wantOrder(6, 2, 3, 4)
		l.flood(2, 3, 4)
		wantOrder(2, 3, 4)
		x := eth(frame.Broadcast, h.MAC, "")
		h.Send(x)
		for i, f := range fs {
			if i < 3 {
				f.want(vx(vni, x))
			} else {
				f.want()
			}
		}
	}},
	{id: "5.replication-live", name: "peers come and go", wire: func(l *lab) {
		l.std()
		h, fs := l.host(), l.fars(2, 5)
		lists := [][]byte{{2, 3}, {2, 3, 4}, {2, 4}, {2, 4, 5}, {2}, {5, 4, 3, 2}}
		l.flood(lists[0]...)
		stop := make(chan struct{})
		ended := make(chan struct{})
		var sent, from []int // frame i was sent while list from[i] held
		var now atomic.Int64
		go func() {
			defer close(ended)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				b := eth(frame.Broadcast, h.MAC, "")
				binary.BigEndian.PutUint32(b[20:], uint32(i))
				if err := h.Pipe.Send(b); err != nil {
					l.T.Errorf("frame %d: %v", i, err)
				}
				sent, from = append(sent, i), append(from, int(now.Load()))
				time.Sleep(time.Millisecond)
			}
		}()
		time.Sleep(500 * time.Microsecond) // between two frames
		for i := range lists {
			time.Sleep(50 * time.Millisecond)
			l.flood(lists[i]...)
			now.Store(int64(i))
		}
		time.Sleep(50 * time.Millisecond)
		close(stop)
		<-ended
		l.Settle()
		for k, f := range fs {
			got := map[uint32]int{}
			for _, d := range f.got() {
				got[binary.BigEndian.Uint32(d.payload[28:])]++
			}
			for j, i := range sent {
				want := 0
				if slices.Contains(lists[from[j]], byte(k+2)) {
					want = 1
				}
				if got[uint32(i)] != want {
					l.T.Errorf("peer %d got %d of frame %d, want %d", k+2, got[uint32(i)], i, want)
				}
			}
		}
		if len(sent) < 200 {
			l.T.Errorf("%d frames", len(sent))
		}
	}},
}

// unreachableRow lists three peers, of which the one in the middle cannot be reached.
func unreachableRow(name string, breaks func(l *lab, f *far)) row {
	return row{id: "5.replication-unreachable", name: name, wire: func(l *lab) {
		l.std()
		l.flood(2, 3, 4)
		h, fs := l.host(), l.fars(2, 4)
		breaks(l, fs[1])
		var want [][]byte
		for i := range 20 {
			x := eth(frame.Broadcast, h.MAC, fmt.Sprint(i))
			h.Send(x)
			want = append(want, vx(vni, x))
		}
		fs[0].want(want...)
		fs[1].want()
		fs[2].want(want...)
		l.drops(nil)
	}}
}

var specialRows = slices.Concat(bridgeGroup(), []row{
	{id: "5.group-entry", name: "to one port", wire: func(l *lab) {
		l.std()
		l.flood(2)
		a, b, c, f := l.host(), l.host(), l.host(), l.far(2)
		l.must(l.seg.FDB().Set(mcast, b.At.Dest(0), fdb.Static))
		x := eth(mcast, a.MAC, "")
		a.Send(x)
		b.Want(x)
		c.Want()
		f.want()
	}},
	{id: "5.group-entry", name: "to the flood list only", wire: func(l *lab) {
		l.std()
		l.flood(2, 3)
		a, b, f, g := l.host(), l.host(), l.far(2), l.far(3)
		l.must(l.seg.FDB().Set(mcast, l.tun.Dest(0), fdb.Control))
		x := eth(mcast, a.MAC, "")
		a.Send(x)
		b.Want()
		f.want(vx(vni, x))
		g.want(vx(vni, x))
	}},
	{id: "5.gateway", name: "consumed", wire: func(l *lab) {
		gw, n := frame.MAC{2, 0, 0x5e, 0, 0, 1}, 0
		l.start(nil, nil, &vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: stage(func(f *frame.Frame) frame.Verdict {
			n++
			return frame.Consume
		})}}, vswitch.AttachConfig{})
		l.flood(2)
		a, b, f := l.host(), l.host(), l.far(2)
		l.must(l.seg.FDB().Set(gw, 0, fdb.Static))
		a.Send(eth(gw, a.MAC, ""))
		f.send(vx(vni, eth(gw, rmac(1), "")))
		if n != 2 {
			l.T.Errorf("the gateway saw %d frames", n)
		}
		a.Want()
		b.Want()
		f.want()
		l.drops(nil)
		for _, p := range l.Stats().Ports {
			if want := uint64(1); (p.Port == a.At.Dest(0).Port() || p.Port == l.tun.Dest(0).Port()) && p.Consumed != want {
				l.T.Errorf("%s: %d consumed", p.Name, p.Consumed)
			}
		}
	}},
	{id: "5.gateway", name: "without a gateway: dropped, not flooded", wire: func(l *lab) {
		gw := frame.MAC{2, 0, 0x5e, 0, 0, 1}
		l.std()
		l.flood(2)
		a, b, f := l.host(), l.host(), l.far(2)
		l.must(l.seg.FDB().Set(gw, 0, fdb.Static))
		a.Send(eth(gw, a.MAC, ""))
		b.Want()
		f.want()
		l.drops(one("no-route"))
	}},
	{id: "5.reflect", name: "on its own port", local: func(l *lab) {
		l.bridge(nil, nil)
		a, b := l.host(), l.host()
		a.Send(eth(nobody, rmac(1), ""))
		b.Got()
		a.Send(eth(rmac(1), rmac(2), ""))
		a.Want()
		b.Want()
		l.drops(one("reflect"))
	}},
	{id: "5.reflect", name: "behind its own peer", wire: func(l *lab) {
		l.std()
		h, f := l.host(), l.far(2)
		f.learnt(rmac(1))
		h.Got()
		f.send(vx(vni, eth(rmac(1), rmac(2), "")))
		h.Want()
		f.want()
		l.drops(one("reflect"))
	}},
	{id: "5.reflect", name: "to itself", local: func(l *lab) {
		l.bridge(nil, nil)
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
		if in := len(b.Got()); in != out || toB != out {
			l.T.Errorf("%v: %d left by the tunnel, %d by a port, %d came in", dst, out, toB, in)
		}
		return out == 1
	}
	on := &vswitch.VSIConfig{ForwardBridgeGroup: true}
	for i := range 16 {
		dst := frame.MAC{1, 0x80, 0xc2, 0, 0, byte(i)}
		rows = append(rows, row{id: "5.bridge-group", name: dst.String(), wire: func(l *lab) {
			l.std()
			if both(l, dst) {
				l.T.Error("forwarded")
			}
			l.drops(map[string]uint64{"reserved-mac": 2})
		}})
	}
	for _, dst := range []frame.MAC{{1, 0x80, 0xc2, 0, 0, 0x10}, {1, 0x80, 0xc1, 0xff, 0xff, 0xff}, {1, 0x80, 0xc2, 0, 1, 0}} {
		rows = append(rows, row{id: "5.bridge-group", name: "not " + dst.String(), wire: func(l *lab) {
			l.std()
			if !both(l, dst) {
				l.T.Error("not forwarded")
			}
			l.drops(nil)
		}})
	}
	for _, i := range []byte{0, 1, 2, 14, 15} {
		dst := frame.MAC{1, 0x80, 0xc2, 0, 0, i}
		rows = append(rows, row{id: "5.bridge-group-setting", name: dst.String(), wire: func(l *lab) {
			l.start(nil, nil, on, vswitch.AttachConfig{})
			if !both(l, dst) {
				l.T.Error("not forwarded")
			}
			l.drops(nil)
		}})
	}
	return rows
}
