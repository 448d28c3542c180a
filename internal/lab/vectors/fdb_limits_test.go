package vectors

import (
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// learnedAt returns how many MACs of a table are learned at a Dest.
func (l *lab) learnedAt(v *vswitch.VSI, d frame.Dest) (n int) {
	for e := range v.FDB().All() {
		if e.Dest == d && e.Origin == fdb.OriginLearned {
			n++
		}
	}
	return n
}

func nth(side byte, i int) frame.MAC {
	return frame.MAC{2, side, 0, byte(i >> 16), byte(i >> 8), byte(i)}
}

// fill sends frames from n MACs into a host's port, twice: learning is best effort.
func fill(h *mem.Host, side byte, n int) {
	for k := range 2 * n {
		i := k % n
		if err := h.Pipe.Send(eth(nobody, nth(side, i), "")); err != nil {
			panic(err)
		}
		if i%64 == 63 {
			time.Sleep(50 * time.Millisecond) // the table grows between turns of the housekeeping
		}
	}
	time.Sleep(100 * time.Millisecond)
}

var limitRows = []row{
	{id: "4.limit-segment", name: "8192 by default", local: func(l *lab) {
		l.bridge(&vswitch.VSIConfig{Refuse: true})
		h := l.host()
		for range 2 { // as below
			fill(h, 1, 8192+10)
		}
		st := l.seg.FDB().Stats()
		l.check(st.LearnedEntries == 8192 && st.Full >= 10, "%+v", st)
	}},
	{id: "4.limit-segment", name: "3", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{MaxMACs: 3, Refuse: true})
		other, _ := l.join(200)
		f := l.far(2)
		for i := byte(1); i <= 5; i++ {
			f.learnt(rmac(i))
			f.send(vx(200, eth(nobody, rmac(i), "")))
		}
		d := l.dest(2)
		l.wantFDB(l.seg, table{rmac(1): d, rmac(2): d, rmac(3): d})
		check.Equal(l.T, "in the other segment", other.FDB().Len(), 5)
		st := l.seg.FDB().Stats()
		l.check(st.Full == 2 && st.Learned == 3, "%+v", st)
	}},
	{id: "4.limit-segment", name: "room again after ageing", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{MaxMACs: 1, Refuse: true})
		f := l.far(2)
		f.learnt(rmac(1))
		l.learns(f, 2, 1)
		l.pass(302 * time.Second)
		l.learns(f, 2, 2)
	}},
	{id: "4.limit-segment", name: "a million", local: func(l *lab) {
		l.bridge(&vswitch.VSIConfig{MaxMACs: 1_000_000, Refuse: true})
		h := l.host()
		for range 3 { // one that comes while the table grows is learned with its next frame
			fill(h, 1, 20_000)
		}
		n := l.seg.FDB().Len()
		l.check(n == 20_000, "%d learned: %+v", n, l.seg.FDB().Stats())
	}},
	{id: "4.limit-port", name: "two of a port", local: func(l *lab) {
		l.bridge(&vswitch.VSIConfig{Refuse: true})
		a, b := l.HostWith(vni, 0, vswitch.AttachConfig{MaxMACs: 2}), l.host()
		for i := byte(1); i <= 4; i++ {
			a.Send(eth(nobody, rmac(i), ""))
			b.Send(eth(nobody, rmac(10+i), ""))
		}
		n, m := l.learnedAt(l.seg, a.At.Dest(0)), l.learnedAt(l.seg, b.At.Dest(0))
		l.check(n == 2 && m == 4, "%d and %d", n, m)
	}},
	{id: "4.limit-port", name: "a MAC does not move to a full port", local: func(l *lab) {
		l.bridge(&vswitch.VSIConfig{Refuse: true})
		a, b := l.HostWith(vni, 0, vswitch.AttachConfig{MaxMACs: 1}), l.host()
		a.Send(eth(nobody, rmac(1), ""))
		b.Send(eth(nobody, rmac(2), ""))
		a.Send(eth(nobody, rmac(2), ""))
		l.wantFDB(l.seg, table{rmac(1): a.At.Dest(0), rmac(2): b.At.Dest(0)})
	}},
	{id: "4.limit-peer", name: "two of each peer", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{Refuse: true}, vswitch.AttachConfig{MaxMACs: 2})
		f, g := l.far(2), l.far(3)
		for i := byte(1); i <= 4; i++ {
			f.learnt(rmac(i))
			g.learnt(rmac(10 + i))
		}
		l.wantFDB(l.seg, table{rmac(1): l.dest(2), rmac(2): l.dest(2), rmac(11): l.dest(3), rmac(12): l.dest(3)})
	}},
	{id: "4.limit-all", name: "three in two segments", wire: func(l *lab) {
		l.start(&vswitch.Config{MaxMACs: 3}, &vswitch.VSIConfig{Refuse: true})
		other, tun := l.join(200)
		f := l.far(2)
		f.learnt(rmac(1))
		f.send(vx(200, eth(nobody, rmac(1), "")))
		f.learnt(rmac(2), rmac(3))
		f.send(vx(200, eth(nobody, rmac(2), "")))
		l.wantFDB(l.seg, table{rmac(1): l.dest(2), rmac(2): l.dest(2)})
		l.wantFDB(other, table{rmac(2): tun.Dest(l.peer(2))}) // evicts what is its own
	}},
	{id: "4.limit-all", name: "a segment that goes gives its share back", wire: func(l *lab) {
		l.start(&vswitch.Config{MaxMACs: 2}, &vswitch.VSIConfig{Refuse: true})
		other, _ := l.join(200)
		f := l.far(2)
		f.send(vx(200, eth(nobody, rmac(1), "")), vx(200, eth(nobody, rmac(2), "")))
		f.learnt(rmac(3)) // a half is its own, whatever the other has
		f.learnt(rmac(4))
		l.wantFDB(l.seg, table{rmac(3): l.dest(2)})
		l.must(other.Delete())
		f.learnt(rmac(4))
		l.wantFDB(l.seg, table{rmac(3): l.dest(2), rmac(4): l.dest(2)})
	}},
	{id: "4.limit-learned", name: "static and control ones do not count", wire: func(l *lab) {
		l.start(&vswitch.Config{MaxMACs: 2}, &vswitch.VSIConfig{MaxMACs: 2, Refuse: true}, vswitch.AttachConfig{MaxMACs: 2})
		at := l.listed(2)
		want := table{}
		for i := byte(1); i <= 10; i++ {
			flags := fdb.Static
			if i%2 == 0 {
				flags = fdb.Control
			}
			l.set(rmac(i), at, flags)
			want[rmac(i)] = at
		}
		f := l.far(2)
		f.learnt(rmac(11), rmac(12), rmac(13))
		want[rmac(11)], want[rmac(12)] = at, at
		l.wantFDB(l.seg, want)
	}},
	forwardsRow("segment", &vswitch.VSIConfig{MaxMACs: 1, Refuse: true}),
	forwardsRow("peer", &vswitch.VSIConfig{Refuse: true}, vswitch.AttachConfig{MaxMACs: 1}),
	forwardsRow("all", &vswitch.Config{MaxMACs: 1}, &vswitch.VSIConfig{Refuse: true}),

	{id: "4.evict", name: "the oldest of the only holder", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{MaxMACs: 3})
		f, w := l.far(2), l.watch()
		l.host()
		w.got()
		for i := byte(1); i <= 3; i++ {
			f.learnt(rmac(i))
			l.pass(2 * time.Second)
		}
		f.learnt(rmac(1)) // heard again: 2 is the oldest now
		l.pass(2 * time.Second)
		w.got()
		f.learnt(rmac(4))
		d := l.dest(2)
		l.wantFDB(l.seg, table{rmac(1): d, rmac(3): d, rmac(4): d})
		w.want(frame.Event{Kind: frame.EventMACEvicted, VNI: vni, MAC: rmac(2), Dest: d},
			frame.Event{Kind: frame.EventMACLearned, VNI: vni, MAC: rmac(4), Dest: d})
		l.drops(nil)
	}},
	{id: "4.evict", name: "whoever holds the most", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{MaxMACs: 4})
		f, g := l.far(2), l.far(3)
		g.learnt(rmac(31)) // the oldest of all, but g holds little
		for i := byte(1); i <= 20; i++ {
			l.pass(time.Second)
			f.learnt(rmac(i))
		}
		g.learnt(rmac(32))
		l.wantFDB(l.seg, table{rmac(31): l.dest(3), rmac(32): l.dest(3), rmac(19): l.dest(2), rmac(20): l.dest(2)})
	}},
	{id: "4.evict", name: "of the port at its own limit", local: func(l *lab) {
		l.bridge(&vswitch.VSIConfig{})
		a, b := l.HostWith(vni, 0, vswitch.AttachConfig{MaxMACs: 1}), l.host()
		for i := byte(1); i <= 3; i++ {
			b.Send(eth(nobody, rmac(10+i), ""))
		}
		a.Send(eth(nobody, rmac(1), ""), eth(nobody, rmac(2), ""))
		d := b.At.Dest(0)
		l.wantFDB(l.seg, table{rmac(11): d, rmac(12): d, rmac(13): d, rmac(2): a.At.Dest(0)})
	}},
	{id: "4.evict", name: "never a pinned one", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{MaxMACs: 1})
		at := l.listed(2)
		d := at
		l.set(rmac(1), d, fdb.Static)
		f := l.far(2)
		f.learnt(rmac(2), rmac(3))
		l.wantFDB(l.seg, table{rmac(1): d, rmac(3): d})
	}},
}

func forwardsRow(name string, with ...any) row {
	return row{id: "4.limit-forwards", name: name, wire: func(l *lab) {
		h, f := l.pair(with...)
		for i := byte(1); i <= 3; i++ {
			l.passes(f, eth(h.MAC, rmac(i), ""), h)
		}
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		l.drops(nil)
	}}
}

// learns fails the test unless these MACs, and no others, are in the table after far end f has
// sent a frame from MAC i.
func (l *lab) learns(f *far, i byte, want ...byte) {
	l.T.Helper()
	f.learnt(rmac(i))
	t := table{}
	for _, n := range want {
		t[rmac(n)] = l.dest(2)
	}
	l.wantFDB(l.seg, t)
}

var runtimeRows = []row{
	{id: "4.runtime-limit", name: "segment, raised", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{MaxMACs: 1, Refuse: true})
		f := l.far(2)
		l.learns(f, 1, 1)
		l.learns(f, 2, 1)
		l.must(l.seg.Configure(vswitch.VSIConfig{MaxMACs: 2, Refuse: true}))
		l.learns(f, 2, 1, 2)
	}},
	{id: "4.runtime-limit", name: "segment, lowered, evicts", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{MaxMACs: 5})
		f := l.far(2)
		for i := byte(1); i <= 5; i++ {
			f.learnt(rmac(i))
			l.pass(time.Second)
		}
		l.must(l.seg.Configure(vswitch.VSIConfig{MaxMACs: 2}))
		l.wantFDB(l.seg, table{rmac(4): l.dest(2), rmac(5): l.dest(2)})
	}},
	{id: "4.runtime-limit", name: "attachment", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{Refuse: true}, vswitch.AttachConfig{MaxMACs: 1})
		f := l.far(2)
		l.learns(f, 1, 1)
		l.learns(f, 2, 1)
		l.must(l.tun.Configure(vswitch.AttachConfig{}))
		l.learns(f, 2, 1, 2)
	}},
	{id: "4.runtime-learning", name: "attachment", wire: func(l *lab) {
		h, f := l.pair(vswitch.AttachConfig{NoLearn: true})
		f.learnt(rmac(1))
		h.Send(eth(nobody, h.MAC, ""))
		check.Equal(l.T, "frames", len(h.Got()), 1)
		l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0)})
		l.must(l.tun.Configure(vswitch.AttachConfig{}))
		f.learnt(rmac(1))
		l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0), rmac(1): l.dest(2)})
		l.must(l.tun.Configure(vswitch.AttachConfig{NoLearn: true}))
		f.learnt(rmac(2))
		l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0), rmac(1): l.dest(2)})
	}},
	{id: "4.runtime-learning", name: "segment", wire: func(l *lab) {
		h, f := l.pair(&vswitch.VSIConfig{NoLearn: true})
		f.learnt(rmac(1))
		h.Send(eth(nobody, h.MAC, ""))
		l.wantFDB(l.seg, table{})
		l.must(l.seg.Configure(vswitch.VSIConfig{}))
		f.learnt(rmac(1))
		h.Send(eth(nobody, h.MAC, ""))
		l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0), rmac(1): l.dest(2)})
	}},
	{id: "4.runtime-learning", name: "off: a host that moved is still found where it was", wire: func(l *lab) {
		h, f, g := l.trio()
		f.learnt(rmac(1))
		l.must(l.tun.Configure(vswitch.AttachConfig{NoLearn: true}))
		g.learnt(rmac(1))
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		check.Equal(l.T, "frames", len(h.Got()), 2)
	}},
}
