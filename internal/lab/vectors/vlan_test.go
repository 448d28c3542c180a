package vectors

import (
	"bytes"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var vlanRows = slices.Concat([]row{
	stripped("802.1Q", mem.Tagged(5, in1)),
	stripped("802.1Q, VLAN 0", mem.Tagged(0, in1)),
	stripped("802.1Q, priority 7", mem.Tagged(0xe005, in1)),
	stripped("802.1ad", qinq(in1)),
	stripped("802.1ad and 802.1Q", qinq(mem.Tagged(7, in1))),
	stripped("two of 802.1Q", mem.Tagged(7, mem.Tagged(5, in1))),
	stripped("none", in1),
	unstripped("three tags", qinq(mem.Tagged(7, mem.Tagged(8, in1))), "inner-vlan"),
	unstripped("no tag behind the EtherType", mem.Tagged(5, in1)[:14], "short"),
	unstripped("no tag behind the second EtherType", qinq(mem.Tagged(5, in1))[:20], "short"),
	{id: "1.vlan-strip", name: "tagged frames from ports do not enter", wire: func(l *lab) {
		h, _ := l.pair(inner1(vswitch.VLANStrip), floods{2})
		h.Send(mem.Tagged(5, in1), qinq(in1))
		l.dropped("unknown-vlan", "inner-vlan")
	}},
	{id: "1.vlan-strip", name: "into a trunk's VLAN", wire: func(l *lab) {
		l.start(inner1(vswitch.VLANStrip))
		h, f := l.HostWith(vni, 10, vswitch.AttachConfig{}), l.far(2)
		f.send(vx(vni, mem.Tagged(5, in1)))
		h.Want(mem.Tagged(10, in1))
	}},
	{id: "1.vlan-strip", name: "at run time", wire: func(l *lab) {
		h, f := l.pair()
		l.must(l.seg.Configure(*inner1(vswitch.VLANStrip)))
		f.send(vx(vni, mem.Tagged(5, in1)))
		h.Want(in1)
		l.must(l.seg.Configure(vswitch.VSIConfig{}))
		f.send(vx(vni, mem.Tagged(5, in1)))
		l.dropped("inner-vlan")
	}},

	passed("802.1Q", mem.Tagged(5, in1)),
	passed("802.1Q, VLAN 0, from the tunnel", mem.Tagged(0xe000, in1)),
	passed("802.1ad", qinq(in1)),
	passed("two tags", qinq(mem.Tagged(7, in1))),
	passed("three tags", qinq(mem.Tagged(7, mem.Tagged(8, in1)))),
	passed("none", in1),
	{id: "1.vlan-pass", name: "a priority tag from a port goes (IEEE 802.1Q, 6.9.1)", wire: func(l *lab) {
		l.passing()
		h, f := l.host(), l.far(2)
		h.Send(mem.Tagged(0xe000, in1))
		f.want(vx(vni, in1))
	}},
	{id: "1.vlan-pass", name: "no tag behind the EtherType", wire: func(l *lab) {
		l.passing()
		_, f := l.host(), l.far(2)
		f.send(vx(vni, mem.Tagged(5, in1)[:17]))
		l.dropped("short")
		l.wantFDB(l.seg, table{})
	}},
	{id: "1.vlan-pass", name: "a bad source is still one", wire: func(l *lab) {
		l.passing()
		_, f := l.host(), l.far(2)
		f.send(vx(vni, mem.Tagged(5, eth(nobody, mcast, ""))))
		l.dropped("bad-source-mac")
	}},
	{id: "1.vlan-pass-trunk", name: "VLAN 10 is elsewhere", wire: func(l *lab) {
		l.passing()
		other, _ := l.join(200)
		h, f := l.host(), l.far(2)
		l.must(l.VTEP.SetFlood(200, l.at(2)))
		at := check.Must(other.Attach(h.Pipe, 10))(l.T)
		h.Send(mem.Tagged(10, in1), mem.Tagged(11, in1), mem.Tagged(10, in1), in1)
		f.want(vx(200, in1), vx(vni, mem.Tagged(11, in1)), vx(200, in1), vx(vni, in1))
		l.must(at.Detach())
		h.Send(mem.Tagged(10, in1))
		f.want(vx(vni, mem.Tagged(10, in1)))
		l.drops(nil)
	}},
	{id: "1.vlan-pass-trunk", name: "what is behind the tag of a trunk", wire: func(l *lab) {
		l.passing()
		h, f := l.HostWith(vni, 10, vswitch.AttachConfig{}), l.far(2)
		h.Send(mem.Tagged(10, mem.Tagged(5, in1)))
		f.want(vx(vni, mem.Tagged(5, in1)))
		h.Send(mem.Tagged(5, in1), in1) // there is no access attachment
		l.dropped("unknown-vlan", "unknown-vlan")
		b := eth(rmac(1), rmac(2), "back")
		f.send(vx(vni, mem.Tagged(5, b)))
		h.Want(mem.Tagged(10, mem.Tagged(5, b)))
	}},
	{id: "1.vlan-pass-learning", name: "the same MAC in two VLANs", wire: func(l *lab) {
		l.passing()
		h, f := l.host(), l.far(2)
		f.send(vx(vni, mem.Tagged(5, in1)))
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		h.Got()
		h.Send(mem.Tagged(6, in1))
		l.wantFDB(l.seg, table{rmac(1): h.At.Dest(0)})
		st := l.seg.FDB().Stats()
		l.check(st.Learned == 1 && st.Moved == 1, "%+v", st)
	}},
	{id: "1.vlan-pass-mtu", name: "of an access port", wire: func(l *lab) {
		l.bigger(9000)
		l.passing()
		h, f := l.host(), l.far(2) // of MTU 1514
		fits := eth(h.MAC, rmac(1), string(make([]byte, 1500)))
		h.Send(eth(nobody, h.MAC, "here"))
		f.send(vx(vni, fits), vx(vni, mem.Tagged(5, fits)))
		h.Want(fits, mem.Tagged(5, fits))
		f.send(vx(vni, mem.Tagged(5, append(fits, 0))), vx(vni, mem.Tagged(5, mem.Tagged(6, fits))))
		f.send(vx(vni, append(fits, 0)))
		copy(fits, frame.Broadcast[:])
		f.send(vx(vni, mem.Tagged(5, fits)), vx(vni, mem.Tagged(5, append(fits, 0))))
		h.Want(mem.Tagged(5, fits))
		l.drops(map[string]uint64{"too-big": 4})
	}},
}, []row{
	{id: "1.vlan-pass-mtu", name: "of the tunnel", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{InnerVLAN: vswitch.VLANPass})
		h, f := l.jumbo(), l.far(2)
		f.learnt(rmac(1))
		h.Got()
		n := pick(l.ip6, 1446, 1426)
		l.passes(h, mem.Tagged(5, ip4(rmac(1), h.MAC, n, udp4)), f)
		long := ip4(rmac(1), h.MAC, n+1, udp4)
		h.Send(mem.Tagged(5, long))
		h.Want(mem.Tagged(5, answer(long, n)))
		f.want()
	}},
}, inside("1.vlan-pass-gateway", "routed without a tag only", func(l *lab, v6 bool) {
	s := l.site(v6, false)
	s.configure(vni, func(c *node.Segment) { c.InnerVLAN = vswitch.VLANPass })
	s.behind(vni, 7)
	p := s.fromA(s.b.IP).bytes()
	s.a.Send(mem.Tagged(5, p))
	s.f.send(vx(vni, mem.Tagged(5, p)))
	l.drops(map[string]uint64{"inner-vlan": 2})
	l.quiet()
	q := whoHas(s.ip(vni, gatewayHost), s.a.MAC, s.a.IP).bytes()
	s.a.Send(mem.Tagged(5, q)) // for the gateway of that VLAN, if there is one
	s.a.Want()
	s.f.want(vx(vni, mem.Tagged(5, q)))
	s.a.Send(p)
	l.check(len(s.b.Got()) == 1, "not routed without a tag")
}))

func inner1(m vswitch.VLANMode) *vswitch.VSIConfig { return &vswitch.VSIConfig{InnerVLAN: m} }

// passing is start with tags passed, and far end 2 in the flood list.
func (l *lab) passing() {
	l.T.Helper()
	l.start(inner1(vswitch.VLANPass), floods{2})
}

// stripped is a row: a frame from the tunnel arrives without its tags, and teaches.
func stripped(name string, b []byte) row {
	return row{id: "1.vlan-strip", name: name, wire: func(l *lab) {
		h, f := l.pair(inner1(vswitch.VLANStrip))
		f.send(vx(vni, b))
		h.Want(in1)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		l.drops(nil)
	}}
}

// unstripped is a row: a frame that cannot be made one without tags is dropped.
func unstripped(name string, b []byte, drop string) row {
	return row{id: "1.vlan-strip", name: name, wire: func(l *lab) {
		h, f := l.pair(inner1(vswitch.VLANStrip))
		f.send(vx(vni, b))
		h.Want()
		l.wantFDB(l.seg, table{})
		l.drops(one(drop))
	}}
}

// passed is a row: a frame crosses the tunnel as it is, both ways.
func passed(name string, b []byte) row {
	return row{id: "1.vlan-pass", name: name, wire: func(l *lab) {
		l.passing()
		h, o, f := l.host(), l.host(), l.far(2)
		l.passes(f, b, h, o)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		back := bytes.Clone(b)
		copy(back, in1[6:12])
		copy(back[6:], h.MAC[:])
		if bytes.Equal(back[12:15], []byte{0x81, 0, 0xe0}) {
			return // a port's priority tag is another row
		}
		l.passes(h, back, f)
		l.clean()
	}}
}
