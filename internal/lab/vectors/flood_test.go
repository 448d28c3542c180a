package vectors

import (
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
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
		l.start(floods{2})
		a, b, _, _ := l.host(), l.host(), l.host(), l.far(2)
		b.Send(eth(a.MAC, b.MAC, "here"))
		l.forget()
		l.passes(a, eth(b.MAC, a.MAC, "to b alone"), b)
		l.clean()
	}},
	{id: "5.known", name: "port to peer", wire: func(l *lab) {
		l.start(floods{2, 3})
		h, _, f, _ := l.host(), l.host(), l.far(2), l.far(3)
		f.learnt(rmac(1))
		l.forget()
		l.passes(h, eth(rmac(1), h.MAC, "to 2 alone"), f)
		l.clean()
	}},
	{id: "5.known", name: "peer to port", wire: func(l *lab) {
		l.start(floods{2, 3})
		h, _, f, _ := l.host(), l.host(), l.far(2), l.far(3)
		h.Send(eth(nobody, h.MAC, "here"))
		l.forget()
		l.passes(f, eth(h.MAC, rmac(1), "to h alone"), h)
		l.clean()
	}},
})

// perClass is what holds for each class alike.
func perClass() (rows []row) {
	for _, c := range classes {
		id := "5." + c.name
		rows = append(rows, row{id: id, name: "from a port", wire: func(l *lab) {
			l.start(floods{2, 3})
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
			l.start(floods{2, 3})
			a, b, f, _ := l.host(), l.host(), l.far(2), l.far(3)
			l.passes(f, eth(c.dst, rmac(1), "to all"), a, b)
			l.clean()
		}}, row{id: id, name: "in its own segment only", wire: func(l *lab) {
			l.start(floods{2})
			l.join(200)
			l.must(l.VTEP.SetFlood(200, l.at(3)))
			a, o, f, g := l.host(), l.Host(200), l.far(2), l.far(3)
			x := eth(c.dst, a.MAC, "")
			a.Send(x)
			o.Want()
			f.want(vx(vni, x))
			g.want()
		}}, row{id: id, name: "nobody else there", local: func(l *lab) {
			l.bridge()
			a := l.host()
			a.Send(eth(c.dst, a.MAC, ""))
			l.drops(one("no-egress"))
		}}, row{id: "5.class-off", name: c.name + " from a port", wire: func(l *lab) {
			l.start(&vswitch.VSIConfig{NoFlood: c.bit}, floods{2})
			a, b, f := l.host(), l.host(), l.far(2)
			a.Send(eth(c.dst, a.MAC, ""))
			l.dropped(c.drop)
			l.wantFDB(l.seg, table{a.MAC: a.At.Dest(0)}) // learned all the same
			for _, o := range classes {
				if o.bit != c.bit {
					l.passes(a, eth(o.dst, a.MAC, o.name), b, f)
				}
			}
			l.drops(one(c.drop))
		}}, row{id: "5.class-off", name: c.name + " from a tunnel", wire: func(l *lab) {
			_, f := l.pair(&vswitch.VSIConfig{NoFlood: c.bit})
			f.send(vx(vni, eth(c.dst, rmac(1), "")))
			l.dropped(c.drop)
		}}, row{id: "5.class-off", name: c.name + " at run time", wire: func(l *lab) {
			l.start()
			a, b := l.host(), l.host()
			x := eth(c.dst, a.MAC, "")
			l.flood(2)
			l.passes(a, x, b)
			l.must(l.seg.Configure(vswitch.VSIConfig{NoFlood: c.bit}))
			a.Send(x)
			b.Want()
			l.must(l.seg.Configure(vswitch.VSIConfig{}))
			l.passes(a, x, b)
			l.drops(one(c.drop))
		}}, row{id: "5.class-off-attachment", name: c.name + " of a port", wire: func(l *lab) {
			l.start(floods{2})
			a, b, o, f := l.host(), l.HostWith(vni, 0, vswitch.AttachConfig{NoFlood: c.bit}), l.host(), l.far(2)
			for _, k := range classes {
				x := eth(k.dst, a.MAC, k.name)
				l.passes(a, x, o, f)
				if k.bit == c.bit {
					b.Want()
				} else {
					b.Want(x)
				}
			}
			l.drops(nil)
		}}, row{id: "5.class-off-attachment", name: c.name + " of the tunnel", wire: func(l *lab) {
			l.start(vswitch.AttachConfig{NoFlood: c.bit}, floods{2})
			a, b, f := l.host(), l.host(), l.far(2)
			x := eth(c.dst, a.MAC, "")
			l.passes(a, x, b)
			f.want()
			l.must(l.tun.Configure(vswitch.AttachConfig{}))
			l.passes(a, x, b, f)
		}}, row{id: "5.class-counted", name: c.name + " from a port", wire: func(l *lab) {
			l.start(floods{2, 3, 4})
			a := l.host()
			l.host()
			a.Send(eth(c.dst, a.MAC, ""))
			l.Settle()
			p, v := l.counted(a.At.Dest(0))
			l.check(p == c.counter() && v == c.counter(), "port %+v, segment %+v", p, v)
		}}, row{id: "5.class-counted", name: c.name + " from a tunnel", wire: func(l *lab) {
			l.start()
			l.host()
			l.host()
			l.far(2).send(vx(vni, eth(c.dst, rmac(1), "")))
			p, v := l.counted(l.tun.Dest(0))
			l.check(p == c.counter() && v == c.counter(), "port %+v, segment %+v", p, v)
		}}, row{id: "5.class-counted", name: c.name + " dropped is no flood", wire: func(l *lab) {
			l.start(&vswitch.VSIConfig{NoFlood: c.bit})
			l.host()
			l.far(2).send(vx(vni, eth(c.dst, rmac(1), "")))
			p, v := l.counted(l.tun.Dest(0))
			l.check(p == (vswitch.Flooded{}) && v == (vswitch.Flooded{}), "port %+v, segment %+v", p, v)
		}}, row{id: "5.mesh-bum", name: c.name, wire: func(l *lab) {
			l.start(floods{2, 3, 4})
			h, fs := l.host(), l.fars(2, 4)
			x := eth(c.dst, rmac(1), "")
			fs[0].send(vx(vni, x))
			h.Want(x)
			for _, f := range fs {
				f.want()
			}
			l.drops(nil)
		}}, row{id: "5.hub", name: c.name, wire: func(l *lab) {
			l.start(vswitch.AttachConfig{Hub: true}, floods{2, 3, 4})
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
