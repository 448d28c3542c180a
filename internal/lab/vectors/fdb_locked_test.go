package vectors

import (
	"context"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// between has a MAC heard in turn at both, n times.
func (l *lab) between(f, g *far, n int) {
	l.T.Helper()
	for i := range n {
		if i%2 == 0 {
			f.learnt(rmac(1))
		} else {
			g.learnt(rmac(1))
		}
	}
}

var freezeRows = []row{
	{id: "4.freeze-segment", name: "five moves", wire: func(l *lab) {
		h, f, g := l.trio(&vswitch.VSIConfig{Freeze: 5})
		l.between(f, g, 6)
		e := l.entry(rmac(1))
		l.check(e.Frozen && e.Dest == l.dest(2) && e.Moves == 5, "%+v", e)
		h.Got()
		g.learnt(rmac(1)) // dropped, and not followed
		g.learnt(rmac(1))
		h.Want()
		f.learnt(rmac(1)) // where it stays, that is, where it was first, it is heard
		check.Equal(l.T, "frames", len(h.Got()), 1)
		l.passes(h, eth(rmac(1), h.MAC, "to where it stays"), f)
		l.dropped("mac-pinned", "mac-pinned", "mac-pinned")
		st := l.seg.FDB().Stats()
		l.check(st.Frozen == 1 && st.Refused == 3, "%+v", st)
		for range 170 { // nobody makes it longer
			g.learnt(rmac(1))
			f.learnt(rmac(1))
			l.pass(time.Second)
		}
		e = l.entry(rmac(1))
		l.check(e.Frozen, "%+v", e)
		l.pass(12 * time.Second)
		g.learnt(rmac(1))
		e = l.entry(rmac(1))
		l.check(!e.Frozen && e.Dest == l.dest(3), "%+v", e)
	}},
	{id: "4.freeze-segment", name: "at run time", wire: func(l *lab) {
		l.start()
		f, g := l.far(2), l.far(3)
		l.host()
		l.between(f, g, 4)
		l.must(l.seg.Configure(vswitch.VSIConfig{Freeze: 5}))
		l.between(f, g, 2) // moves of before count
		e := l.entry(rmac(1))
		l.check(e.Frozen && e.Dest == l.dest(2), "%+v", e)
		l.must(l.seg.Configure(vswitch.VSIConfig{}))
		g.learnt(rmac(1))
		l.drops(map[string]uint64{"mac-pinned": 2}) // what is frozen stays so
		f.learnt(rmac(2))
		g.learnt(rmac(2))
		f.learnt(rmac(2))
		l.drops(map[string]uint64{"mac-pinned": 2})
	}},
	{id: "4.freeze-segment", name: "moves further apart than 180 s do not count", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{Freeze: 2})
		f, g := l.far(2), l.far(3)
		l.host()
		for range 3 {
			l.between(f, g, 1)
			l.pass(181 * time.Second)
			l.between(g, f, 1)
			l.pass(181 * time.Second)
		}
		e := l.entry(rmac(1))
		l.check(!e.Frozen && l.seg.FDB().Stats().Moved == 5, "%+v", e)
		l.drops(nil)
	}},
	{id: "4.freeze-segment", name: "claims are forwarded if pinned ones are", wire: func(l *lab) {
		h, f, g := l.trio(&vswitch.VSIConfig{Freeze: 1, ForwardPinned: true})
		l.between(f, g, 3)
		check.Equal(l.T, "frames", len(h.Got()), 3)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
	}},
	{id: "4.freeze-event", name: "one for each freeze", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{Freeze: 2})
		l.host()
		w, f, g := l.watch(), l.far(2), l.far(3)
		l.between(f, g, 3)
		l.between(g, f, 10) // f is where it stays
		a, b := l.dest(2), l.dest(3)
		w.want(
			frame.Event{Kind: frame.EventMACLearned, VNI: vni, MAC: rmac(1), Dest: a},
			frame.Event{Kind: frame.EventMACMoved, VNI: vni, MAC: rmac(1), Dest: b, Old: a},
			frame.Event{Kind: frame.EventMACMoved, VNI: vni, MAC: rmac(1), Dest: a, Old: b},
			frame.Event{Kind: frame.EventMACFrozen, VNI: vni, MAC: rmac(1), Dest: a, Old: b},
		)
		l.seg.Flush()
		l.between(f, g, 3)
		evs := w.got()
		l.check(len(evs) == 5 && evs[0].Kind == frame.EventFlushed && evs[4].Kind == frame.EventMACFrozen, "%+v", evs)
	}},
	thawed("its time", func(l *lab) { l.pass(182 * time.Second) }),
	thawed("ageing", func(l *lab) { l.pass(302 * time.Second) }),
	thawed("a flush of the segment", func(l *lab) { l.seg.Flush() }),
	thawed("a flush of the port", func(l *lab) { l.must(l.FlushPort(l.VTEP)) }),
	thawed("a flush of the peer", func(l *lab) { l.FlushPeer(l.dest(2)) }),
	thawed("deleting", func(l *lab) { l.seg.FDB().Delete(rmac(1)) }),
}

func thawed(name string, by func(l *lab)) row {
	return row{id: "4.freeze-thaw", name: name, wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{Freeze: 1})
		l.host()
		f, g := l.far(2), l.far(3)
		l.between(f, g, 3)
		l.drops(one("mac-pinned"))
		l.must(l.seg.Configure(vswitch.VSIConfig{}))
		by(l)
		g.learnt(rmac(1))
		l.wantFDB(l.seg, table{rmac(1): l.dest(3)})
		l.drops(one("mac-pinned"))
	}}
}

// locked is a bridge with host a on a locked port, and b on another.
func (l *lab) locked() (a, b *mem.Host) {
	l.T.Helper()
	l.bridge()
	return l.HostWith(vni, 0, vswitch.AttachConfig{Locked: true}), l.host()
}

var lockedRows = []row{
	{id: "4.locked", name: "nobody is entered", local: func(l *lab) {
		a, b := l.locked()
		a.Send(eth(frame.Broadcast, a.MAC, ""), eth(b.MAC, a.MAC, ""))
		l.dropped("locked", "locked")
	}},
	{id: "4.locked", name: "static", local: func(l *lab) {
		a, b := l.locked()
		l.set(a.MAC, a.At.Dest(0), fdb.Static)
		x := eth(b.MAC, a.MAC, "")
		a.Send(x, eth(b.MAC, rmac(1), "another"))
		b.Want(x)
		l.drops(one("locked"))
		l.seg.FDB().Delete(a.MAC)
		a.Send(x)
		l.dropped("locked", "locked")
	}},
	{id: "4.locked", name: "of a control plane", local: func(l *lab) {
		a, b := l.locked()
		l.set(a.MAC, a.At.Dest(0), fdb.Control)
		l.passes(a, eth(b.MAC, a.MAC, ""), b)
		l.clean()
	}},
	{id: "4.locked", name: "entered at another port", local: func(l *lab) {
		a, b := l.locked()
		l.set(a.MAC, b.At.Dest(0), fdb.Static)
		l.set(rmac(1), b.At.Dest(0), fdb.Control)
		a.Send(eth(frame.Broadcast, a.MAC, ""), eth(frame.Broadcast, rmac(1), ""))
		l.dropped("locked", "locked")
	}},
	{id: "4.locked", name: "locked at run time: what was learned is no entry that somebody made", local: func(l *lab) {
		a, b := l.bridged()
		x := eth(frame.Broadcast, a.MAC, "")
		a.Send(x)
		l.must(a.At.Configure(vswitch.AttachConfig{Locked: true}))
		l.passes(a, x, b)
		l.drops(one("locked"))
		l.must(a.At.Configure(vswitch.AttachConfig{}))
		l.passes(a, x, b)
	}},
	{id: "4.locked", name: "a tunnel, by its peers", wire: func(l *lab) {
		h, f, g := l.trio(vswitch.AttachConfig{Locked: true})
		l.set(rmac(1), l.listed(2), fdb.Control)
		f.send(vx(vni, in1))
		g.send(vx(vni, in1))
		h.Want(in1)
		l.drops(one("locked"))
	}},
	{id: "4.locked", name: "counted by port and segment", local: func(l *lab) {
		a, _ := l.locked()
		a.Send(eth(frame.Broadcast, a.MAC, ""))
		st := l.Stats()
		p, v := st.Ports[1].RxDrops[frame.Locked], st.VSIs[0].Drops[frame.Locked]
		l.check(p == 1 && v == 1, "%d and %d", p, v)
	}},
	{id: "4.locked-learning", name: "neither new nor moved", local: func(l *lab) {
		a, b := l.locked()
		b.Send(eth(nobody, b.MAC, ""))
		a.Send(eth(nobody, a.MAC, ""), eth(nobody, b.MAC, ""))
		l.wantFDB(l.seg, table{b.MAC: b.At.Dest(0)})
	}},
	{id: "4.locked-learning", name: "a control entry elsewhere does not give way", local: func(l *lab) {
		a, b := l.locked()
		l.set(a.MAC, b.At.Dest(0), fdb.Control)
		a.Send(eth(nobody, a.MAC, ""))
		l.wantFDB(l.seg, table{a.MAC: b.At.Dest(0)})
	}},
	{id: "4.locked-out", name: "flooded, and to a MAC there", local: func(l *lab) {
		a, b := l.locked()
		l.set(a.MAC, a.At.Dest(0), fdb.Static)
		x, y := eth(frame.Broadcast, b.MAC, ""), eth(a.MAC, b.MAC, "")
		b.Send(x, y)
		a.Want(x, y)
		l.drops(nil)
	}},
	{id: "4.events-bound", name: "4096 by default", local: func(l *lab) { l.overflow(nil, 4096) }},
	{id: "4.events-bound", name: "10", local: func(l *lab) { l.overflow(&vswitch.Config{Events: 10}, 10) }},
}

// overflow has more events happen than fit, while nobody reads.
func (l *lab) overflow(cfg *vswitch.Config, room int) {
	l.T.Helper()
	l.bridge(cfg)
	h := l.host()
	e := l.Events()
	defer e.Close()
	quick := l.Events() // is read all the time
	defer quick.Close()
	total := room + room/2
	seen := 0
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for {
			if ev, err := quick.Next(ctx); err != nil || ev.Kind == frame.EventOverflow {
				return
			}
			seen++
		}
	}()
	for i := range total {
		l.Notify(frame.Event{Kind: frame.EventNeighbourLearned, Dest: h.At.Dest(0), MAC: nth(1, i)})
		if i%5 == 4 {
			l.Settle()
		}
	}
	l.Settle()
	var kinds []frame.EventKind
	w := &watch{l, e}
	for _, ev := range w.got() {
		kinds = append(kinds, ev.Kind)
	}
	// The first that finds no room takes the place of all before it.
	want := 1 + total - room
	l.check(len(kinds) == want && kinds[0] == frame.EventOverflow && kinds[1] != frame.EventOverflow,
		"%d events, want %d", len(kinds), want)
	n := l.Stats().EventsLost
	l.check(n == uint64(room) && seen == total, "%d lost, want %d; the other reader got %d of %d", n, room, seen, total)
}
