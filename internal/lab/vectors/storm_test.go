package vectors

import (
	"fmt"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// rate is storm control of one class.
func (c *class) rate(r vswitch.Rate) (s vswitch.Storm) {
	switch c.bit {
	case vswitch.Broadcast:
		s.Broadcast = r
	case vswitch.Multicast:
		s.Multicast = r
	default:
		s.UnknownUnicast = r
	}
	return s
}

// pours sends n frames of a class into a port at once, and returns how many came out at o.
func (l *lab) pours(h, o *mem.Host, c class, n int) int {
	l.T.Helper()
	o.Got()
	for range n {
		l.must(h.Pipe.Send(eth(c.dst, h.MAC, "")))
	}
	l.Settle()
	return len(o.Got())
}

func (l *lab) wantPassed(what string, got, want int) {
	l.T.Helper()
	l.check(got == want, "%s: %d passed, want %d", what, got, want)
}

// stormRows are rates for each class, with others beside that have none.
func stormRows() (rows []row) {
	for i, c := range classes {
		other := classes[(i+1)%len(classes)]
		limit := vswitch.AttachConfig{Storm: c.rate(vswitch.Rate{Packets: 7})}
		rows = append(rows, row{id: "5.class-rate", name: c.name + " of a port, and no other", local: func(l *lab) {
			l.bridge()
			a, b, o := l.HostWith(vni, 0, limit), l.host(), l.host()
			l.wantPassed(c.name, l.pours(a, o, c, 20), 7)
			l.wantPassed(other.name, l.pours(a, o, other, 20), 20)
			l.wantPassed("of another port", l.pours(b, o, c, 20), 20)
			l.drops(map[string]uint64{"storm": 13})
		}}, row{id: "5.class-rate", name: c.name + " of the tunnel", wire: func(l *lab) {
			h, f, g := l.trio(limit)
			for range 5 { // peers share what the attachment has
				f.send(vx(vni, eth(c.dst, rmac(1), "")))
				g.send(vx(vni, eth(c.dst, rmac(2), "")))
			}
			l.wantPassed(c.name, len(h.Got()), 7)
			l.drops(map[string]uint64{"storm": 3})
			l.wantFDB(l.seg, table{rmac(1): l.dest(2), rmac(2): l.dest(3)}) // learned all the same
		}}, row{id: "5.class-rate", name: c.name + " of a segment", wire: func(l *lab) {
			l.start(&vswitch.VSIConfig{Storm: limit.Storm}, floods{2})
			a, b, o, f := l.host(), l.host(), l.host(), l.far(2)
			l.wantPassed(c.name, l.pours(a, o, c, 4), 4)
			l.wantPassed("of another port", l.pours(b, o, c, 2), 2)
			f.send(vx(vni, eth(c.dst, rmac(1), "")), vx(vni, eth(c.dst, rmac(1), "")))
			l.wantPassed("of the tunnel", len(o.Got()), 1)
			l.wantPassed(other.name, l.pours(a, o, other, 20), 20)
			other, _ := l.join(200)
			l.must(l.VTEP.SetFlood(200, l.at(2)))
			x, y := l.Host(200), l.Host(200)
			l.wantPassed("of another segment", l.pours(x, y, c, 20), 20)
			l.drops(one("storm"))
			check.Equal(l.T, "MACs of the other segment", other.FDB().Len(), 1)
		}}, row{id: "5.class-rate", name: c.name + " at run time", local: func(l *lab) {
			a, o := l.bridged()
			l.wantPassed("without", l.pours(a, o, c, 20), 20)
			l.pass(time.Second)
			l.must(a.At.Configure(limit))
			l.wantPassed("with", l.pours(a, o, c, 20), 7)
			l.pass(time.Second)
			l.must(a.At.Configure(vswitch.AttachConfig{}))
			l.wantPassed("without again", l.pours(a, o, c, 20), 20)
			l.must(l.seg.Configure(vswitch.VSIConfig{Storm: limit.Storm}))
			l.wantPassed("of the segment", l.pours(a, o, c, 20), 7)
		}}, row{id: "5.storm", name: c.name + ", packets", local: func(l *lab) {
			l.bridge()
			a, o := l.HostWith(vni, 0, limit), l.host()
			l.pours(a, o, c, 100)
			n := 0
			for range 100 { // ten seconds
				l.pass(100 * time.Millisecond)
				n += l.pours(a, o, c, 5)
			}
			l.wantPassed("in ten seconds", n, 70)
			l.drops(map[string]uint64{"storm": 93 + 430})
		}}, row{id: "5.storm", name: c.name + ", bits", local: func(l *lab) {
			l.bridge()
			// A frame of 60 bytes has 480 bits: preamble, FCS and gap are not counted.
			a, o := l.HostWith(vni, 0, vswitch.AttachConfig{Storm: c.rate(vswitch.Rate{Bits: 4800, Packets: 1000})}), l.host()
			l.wantPassed("at once", l.pours(a, o, c, 100), 10)
			l.pass(time.Second)
			long := eth(c.dst, a.MAC, string(make([]byte, 286))) // 300 bytes are 2400 bits
			o.Got()
			a.Send(long, long, long)
			o.Want(long, long)
		}}, row{id: "5.storm-burst", name: c.name, local: func(l *lab) {
			l.bridge()
			a, o := l.HostWith(vni, 0, limit), l.host()
			l.pass(time.Hour)
			l.wantPassed("after an hour", l.pours(a, o, c, 100), 7)
			l.pass(2 * time.Second / 7)
			l.wantPassed("two sevenths of a second later", l.pours(a, o, c, 100), 2)
		}}, row{id: "5.storm-burst", name: c.name + ", a frame of more than a second", local: func(l *lab) {
			l.bridge()
			a, o := l.HostWith(vni, 0, vswitch.AttachConfig{Storm: c.rate(vswitch.Rate{Bits: 240})}), l.host()
			l.wantPassed("at first", l.pours(a, o, c, 3), 1) // 480 bits: two seconds
			l.pass(1900 * time.Millisecond)
			l.wantPassed("not yet paid for", l.pours(a, o, c, 3), 0)
			l.pass(200 * time.Millisecond)
			l.wantPassed("paid for", l.pours(a, o, c, 3), 1)
		}}, row{id: "5.storm-kept", name: c.name, local: func(l *lab) {
			l.bridge()
			a, o := l.HostWith(vni, 0, limit), l.host()
			l.must(l.seg.Configure(vswitch.VSIConfig{Storm: limit.Storm}))
			l.pours(a, o, c, 100)
			same := limit
			same.MaxMACs = 5
			l.must(a.At.Configure(same))
			l.must(l.seg.Configure(vswitch.VSIConfig{Storm: limit.Storm, MaxMACs: 77}))
			l.host()
			l.wantPassed("nothing is refilled", l.pours(a, o, c, 100), 0)
			same.Storm = c.rate(vswitch.Rate{Packets: 700})
			l.must(a.At.Configure(same))
			l.must(l.seg.Configure(vswitch.VSIConfig{}))
			l.wantPassed("an empty bucket stays one", l.pours(a, o, c, 100), 0)
			l.pass(10 * time.Millisecond)
			l.wantPassed("at the new rate", l.pours(a, o, c, 100), 7)
		}})
	}
	return append(rows, slices.Concat(stormCountedRows, inside("5.storm-floods", "what the gateway sends", func(l *lab, v6 bool) {
		s := l.site(v6, false)
		// No flood at all passes but the first; what is routed to a host that the FDB does not
		// know is flooded too, and the gateway's questions are.
		rate := vswitch.Rate{Packets: 1}
		all := vswitch.Storm{Broadcast: rate, Multicast: rate, UnknownUnicast: rate}
		for _, n := range []frame.VNI{vni, vni2} {
			s.configure(n, func(c *node.Segment) { c.Storm = all })
		}
		s.Segment(vni2).Flush()
		for range 5 {
			s.a.Send(s.fromA(s.b.IP).bytes())
		}
		l.wantPassed("routed", len(s.b.Got()), 5)
		l.drops(nil)
	}))...)
}

var stormCountedRows = []row{
	{id: "5.storm", name: "counted by port and segment", local: func(l *lab) {
		l.bridge()
		a, o := l.HostWith(vni, 0, vswitch.AttachConfig{Storm: vswitch.Storm{Broadcast: vswitch.Rate{Packets: 3}}}), l.host()
		l.pours(a, o, classes[0], 10)
		st := l.Stats()
		p, v := st.Ports[1], st.VSIs[0]
		l.check(p.RxDrops[frame.Storm] == 7 && v.Drops[frame.Storm] == 7 && p.Flood.Broadcast == 3 && v.Flood.Broadcast == 3,
			"%+v, %+v", p, v)
	}},
	{id: "5.storm", name: "port and segment: the lower counts", local: func(l *lab) {
		l.bridge(&vswitch.VSIConfig{Storm: vswitch.Storm{Broadcast: vswitch.Rate{Packets: 5}}})
		limit := vswitch.AttachConfig{Storm: vswitch.Storm{Broadcast: vswitch.Rate{Packets: 3}}}
		a, b, o := l.HostWith(vni, 0, limit), l.HostWith(vni, 0, limit), l.host()
		l.wantPassed("a", l.pours(a, o, classes[0], 10), 3)
		l.wantPassed("b", l.pours(b, o, classes[0], 10), 2) // what a was refused took nothing
	}},
	{id: "5.storm-floods", name: "known unicast", local: func(l *lab) {
		rate := vswitch.Rate{Packets: 1, Bits: 1}
		all := vswitch.Storm{Broadcast: rate, Multicast: rate, UnknownUnicast: rate}
		l.bridge(&vswitch.VSIConfig{Storm: all})
		a, o := l.HostWith(vni, 0, vswitch.AttachConfig{Storm: all}), l.host()
		o.Send(eth(a.MAC, o.MAC, ""))
		l.wantPassed("known", l.pours(a, o, class{dst: o.MAC}, 50), 50)
	}},
	{id: "5.storm-floods", name: "an entry of a group", local: func(l *lab) {
		l.bridge(&vswitch.VSIConfig{Storm: vswitch.Storm{Multicast: vswitch.Rate{Packets: 1}}})
		a, o := l.host(), l.host()
		l.set(mcast, o.At.Dest(0), 0)
		l.wantPassed("one place", l.pours(a, o, classes[1], 50), 50)
	}},
	{id: "5.storm-floods", name: "injected", local: func(l *lab) {
		rate := vswitch.Rate{Packets: 1}
		l.bridge(&vswitch.VSIConfig{Storm: vswitch.Storm{Broadcast: rate, Multicast: rate, UnknownUnicast: rate}})
		o := l.host()
		for i := range 9 {
			f := frame.Make(eth(classes[i%3].dst, rmac(1), fmt.Sprint(i)))
			l.Inject(l.seg, &f)
		}
		l.wantPassed("of the switch's own", len(o.Got()), 9)
		l.drops(nil)
	}},
	{id: "5.storm-floods", name: "questions that are answered", wire: func(l *lab) {
		s := l.neighbours(false, 0, arp.TableConfig{}, arp.Config{Mode: arp.Suppress}, nil)
		l.must(l.seg.Configure(vswitch.VSIConfig{Storm: vswitch.Storm{Broadcast: vswitch.Rate{Packets: 2}}, Slots: vswitch.Slots{Neighbour: s.r}}))
		for range 9 {
			s.a.Send(asks(false, s.a.MAC, 1, 3).bytes())
		}
		l.wantPassed("answered", len(s.a.Got()), 9)
		for range 9 {
			s.a.Send(asks(false, s.a.MAC, 1, 5).bytes()) // of whom nothing is known
		}
		l.wantPassed("flooded", len(s.b.Got()), 2)
		for range 9 {
			s.a.Send(asks(false, s.a.MAC, 1, 2).bytes()) // the stage says where to
		}
		l.wantPassed("flooded locally", len(s.b.Got()), 0)
		l.drops(map[string]uint64{"storm": 7 + 9})
	}},
	{id: "5.storm-floods", name: "NoFlood comes first", local: func(l *lab) {
		l.bridge(&vswitch.VSIConfig{NoFlood: vswitch.Broadcast, Storm: vswitch.Storm{Broadcast: vswitch.Rate{Packets: 1}}})
		a, o := l.host(), l.host()
		l.wantPassed("off", l.pours(a, o, classes[0], 5), 0)
		l.drops(map[string]uint64{"broadcast-off": 5})
	}},
}
