package vectors

import (
	"fmt"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
)

// flushed is a row of a flush that is not a method of the switch: on two tables that
// share their generations.
func flushed(id, name string, flush func(g *fdb.Gens, a *fdb.Table), left [2]string) row {
	return row{id: id, name: name, local: func(l *lab) {
		g := fdb.NewGens()
		var events []frame.Event
		notify := func(e frame.Event) { events = append(events, e) }
		var tables [2]*fdb.Table
		for i := range tables {
			t := fdb.NewTable(&fdb.Config{Gens: g, Notify: notify})
			t.Learn(rmac(1), frame.NewDest(1, 0), 0)
			t.Learn(rmac(2), frame.NewDest(2, 5), 0)
			t.Learn(rmac(3), frame.NewDest(2, 6), 0)
			l.must(t.Set(rmac(4), frame.NewDest(2, 5), fdb.Static))
			tables[i] = t
		}
		events = nil
		flush(g, tables[0])
		for i, t := range tables {
			s := ""
			for n := byte(1); n <= 4; n++ {
				if _, ok := t.Lookup(rmac(n)); ok {
					s += fmt.Sprint(n)
				}
			}
			l.check(s == left[i], "table %d: %q are left, want %q", i, s, left[i])
			for n := 0; n < 2 || t.Rounds() < 2; n++ {
				t.Sweep(1000, 4096)
			}
		}
		for _, e := range events {
			late := e.Kind == frame.EventMACAged && !strings.Contains(left[0]+left[1], fmt.Sprint(e.MAC[5]))
			l.check(!late, "late event %+v", e)
		}
	}}
}

var flushRows = []row{
	flushed("4.flush-port", "local port", func(g *fdb.Gens, _ *fdb.Table) { g.FlushPort(1) }, [2]string{"234", "234"}),
	flushed("4.flush-port", "with its peers", func(g *fdb.Gens, _ *fdb.Table) { g.FlushPort(2) }, [2]string{"14", "14"}),
	flushed("4.flush-peer", "one of two", func(g *fdb.Gens, _ *fdb.Table) { g.FlushPeer(frame.NewDest(2, 5)) }, [2]string{"134", "134"}),
	flushed("4.flush-all", "all segments", func(g *fdb.Gens, _ *fdb.Table) { g.FlushAll() }, [2]string{"4", "4"}),
	flushed("4.flush-segment", "one of two", func(_ *fdb.Gens, t *fdb.Table) { t.Flush() }, [2]string{"4", "1234"}),
	{id: "4.flush-segment", name: "under traffic", wire: func(l *lab) {
		l.start(floods{2, 3})
		h, f, g, w := l.host(), l.far(2), l.far(3), l.watch()
		f.learnt(rmac(1))
		at := l.listed(2)
		l.set(rmac(2), at, fdb.Static)
		w.got()
		l.seg.FDB().Flush()
		l.wantFDB(l.seg, table{rmac(2): l.dest(2)})
		l.passes(h, eth(rmac(1), h.MAC, "flooded again"), f, g)
		l.pass(400 * time.Second)
		for _, e := range w.got() {
			l.check(e.MAC != rmac(1), "late event %+v", e)
		}
		f.learnt(rmac(1)) // and learned again
		l.wantFDB(l.seg, table{rmac(1): l.dest(2), rmac(2): l.dest(2)})
	}},
	{id: "4.delete-port", name: "its only attachment", wire: func(l *lab) {
		l.start()
		h, _, f, w := l.host(), l.host(), l.far(2), l.watch()
		f.learnt(rmac(1))
		h.Got()
		fill(h, 1, 200)
		l.set(rmac(9), h.At.Dest(0), fdb.Static)
		l.must(h.At.Detach())
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		w.got()
		l.forget()
		l.pass(time.Second)
		w.want()
		again := l.host() // the number is used again, the old entries do not come back
		l.check(again.At.Dest(0) == h.At.Dest(0), "new host on %v, the old was on %v", again.At.Dest(0), h.At.Dest(0))
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
	}},
	{id: "4.delete-port", name: "one of two attachments", wire: func(l *lab) {
		l.start()
		other, tun := l.join(200)
		f := l.far(2)
		f.learnt(rmac(1))
		f.send(vx(200, eth(nobody, rmac(1), "")))
		d := tun.Dest(l.peer(2))
		l.must(l.tun.Detach())
		l.wantFDB(l.seg, table{})
		l.wantFDB(other, table{rmac(1): d})
	}},
	{id: "4.delete-port", name: "the tunnel", wire: func(l *lab) {
		h, f := l.pair()
		f.learnt(rmac(1))
		h.Send(eth(nobody, h.MAC, ""))
		l.must(l.tun.Detach())
		l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0)})
	}},
	{id: "4.delete-peer", name: "a listed one", wire: func(l *lab) {
		l.start()
		f, g, w := l.far(2), l.far(3), l.watch()
		at := l.listed(2)
		f.learnt(rmac(1))
		g.learnt(rmac(2))
		l.set(rmac(3), at, fdb.Static)
		w.got()
		l.VTEP.DeletePeer(at.Peer())
		l.pass(11 * time.Second)
		l.wantFDB(l.seg, table{rmac(2): l.dest(3)})
		w.want(frame.Event{Kind: frame.EventPeerDown, Dest: at})
		l.check(l.peer(2) == 0, "still a peer")
	}},
	{id: "4.delete-peer", name: "a learned one that nobody names", wire: func(l *lab) {
		l.start()
		f := l.far(2)
		f.learnt(rmac(1))
		l.pass(200 * time.Second)
		l.check(l.peer(2) != 0, "forgotten while an entry names it")
		l.pass(200 * time.Second)
		l.wantFDB(l.seg, table{})
		l.check(l.peer(2) == 0 && l.VTEP.Stats().Learned == 0, "still a peer")
	}},
	{id: "4.late-events", name: "port with learned entries", wire: func(l *lab) {
		l.start()
		h, f, w := l.host(), l.far(2), l.watch()
		fill(h, 1, 100)
		f.learnt(rmac(1))
		d := h.At.Dest(0)
		w.got()
		l.must(h.At.Detach())
		evs := w.got()
		l.check(len(evs) == 2 && evs[0] == frame.Event{Kind: frame.EventDetached, VNI: vni, Dest: d} &&
			evs[1] == frame.Event{Kind: frame.EventPortDown, Dest: d}, "events %+v", evs)
		l.pass(400 * time.Second)
		for _, e := range w.got() {
			l.check(e.Dest != d && e.Old != d, "late event %+v", e)
		}
	}},
	{id: "4.late-events", name: "a MAC that was on the port is learned, not moved", wire: func(l *lab) {
		l.start()
		h, f, w := l.host(), l.far(2), l.watch()
		h.Send(eth(nobody, h.MAC, ""))
		l.must(h.At.Detach())
		w.got()
		f.learnt(h.MAC)
		w.want(frame.Event{Kind: frame.EventMACLearned, VNI: vni, MAC: h.MAC, Dest: l.dest(2)})
	}},
	{id: "4.late-events", name: "peer", wire: func(l *lab) {
		l.start()
		f, g, w := l.far(2), l.far(3), l.watch()
		at := l.listed(2)
		f.learnt(rmac(1))
		gone := at
		l.VTEP.DeletePeer(at.Peer())
		l.pass(11 * time.Second)
		w.got()
		g.learnt(rmac(1))
		w.want(frame.Event{Kind: frame.EventMACLearned, VNI: vni, MAC: rmac(1), Dest: l.dest(3)})
		l.pass(100 * time.Second)
		for _, e := range w.got() {
			l.check(e.Old != gone, "late event %+v", e)
		}
	}},
}
