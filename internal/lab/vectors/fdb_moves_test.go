package vectors

import (
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

var moveRows = []row{
	{id: "4.move", name: "peer to peer", wire: func(l *lab) {
		h, f, g := l.trio()
		f.learnt(rmac(1))
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		g.learnt(rmac(1))
		l.wantFDB(l.seg, table{rmac(1): l.dest(3)})
		b := eth(rmac(1), h.MAC, "follows")
		h.Send(b)
		f.want()
		g.want(vx(vni, b))
	}},
	{id: "4.move", name: "peer to port and back", wire: func(l *lab) {
		l.start()
		h, o, f := l.host(), l.host(), l.far(2)
		f.learnt(h.MAC)
		l.forget()
		h.Send(eth(nobody, h.MAC, "here now"))
		l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0)})
		o.Got()
		b := eth(h.MAC, o.MAC, "follows")
		l.passes(o, b, h)
		f.want()
		f.learnt(h.MAC)
		l.forget()
		o.Send(b)
		h.Want()
		f.want(vx(vni, b))
	}},
	{id: "4.move", name: "port to port", local: func(l *lab) {
		l.bridge()
		a, b, c := l.host(), l.host(), l.host()
		a.Send(eth(nobody, rmac(1), ""))
		b.Send(eth(nobody, rmac(1), ""))
		l.forget()
		x := eth(rmac(1), c.MAC, "")
		c.Send(x)
		a.Want()
		b.Want(x)
	}},
	{id: "4.move-counted", name: "three moves", wire: func(l *lab) {
		l.start()
		f, g := l.far(2), l.far(3)
		for _, x := range []*far{f, f, g, g, f, g} {
			x.learnt(rmac(1))
		}
		st := l.seg.FDB().Stats()
		l.check(st.Learned == 1 && st.Moved == 3, "%+v", st)
		e := l.entry(rmac(1))
		l.check(e.Moves == 3, "%+v", e)
	}},
	{id: "4.move-event", name: "peer to peer", wire: func(l *lab) {
		l.start()
		w, f, g := l.watch(), l.far(2), l.far(3)
		f.learnt(rmac(1), rmac(1))
		w.want(frame.Event{Kind: frame.EventMACLearned, VNI: vni, MAC: rmac(1), Dest: l.dest(2)})
		g.learnt(rmac(1), rmac(1))
		w.want(frame.Event{Kind: frame.EventMACMoved, VNI: vni, MAC: rmac(1), Dest: l.dest(3), Old: l.dest(2)})
	}},
	{id: "4.move-event", name: "a control entry that gave way", wire: func(l *lab) {
		l.start()
		h, w := l.host(), l.watch()
		at := l.listed(2)
		l.set(h.MAC, at, fdb.Control)
		h.Send(eth(nobody, h.MAC, ""))
		w.want(frame.Event{Kind: frame.EventMACMoved, Pinned: true, VNI: vni, MAC: h.MAC, Dest: h.At.Dest(0), Old: at})
	}},
	{id: "4.freeze", name: "at the fifth move", local: func(l *lab) {
		t := fdb.NewTable(&fdb.Config{Freeze: 5})
		a, b := frame.NewDest(1, 0), frame.NewDest(2, 7)
		want := []fdb.Outcome{fdb.New, fdb.Moved, fdb.Moved, fdb.Moved, fdb.Moved, fdb.Frozen, fdb.Known, fdb.Frozen, fdb.Known}
		for i, w := range want {
			d := a
			if i%2 == 1 {
				d = b
			}
			o := t.Learn(rmac(1), d, frame.Tick(i))
			l.check(o == w, "frame %d: %v, want %v", i, o, w)
		}
		e, _ := t.Get(rmac(1))
		l.check(e.Frozen && e.Dest == a, "%+v", e)
		st := t.Stats()
		l.check(st.Frozen == 1 && st.Moved == 4 && st.Refused == 2, "%+v", st)
	}},
	{id: "4.freeze", name: "not when it takes longer than 180 s", local: func(l *lab) {
		t := fdb.NewTable(&fdb.Config{Freeze: 5})
		for i := range 40 {
			if o := t.Learn(rmac(1), frame.NewDest(uint16(i%2+1), 0), frame.Tick(50*i)); o == fdb.Frozen {
				l.T.Fatalf("frozen at move %d", i)
			}
		}
	}},
	{id: "4.freeze-off", name: "as many moves as a second may have", wire: func(l *lab) {
		l.start()
		f, g := l.far(2), l.far(3)
		l.host()
		for range 5 {
			f.learnt(rmac(1))
			g.learnt(rmac(1))
		}
		l.wantFDB(l.seg, table{rmac(1): l.dest(3)})
		st := l.seg.FDB().Stats()
		l.check(st.Moved == 9 && st.Frozen == 0, "%+v", st)
		l.drops(nil)
	}},
}

// claimed is a row: the entry of a MAC behind far end 2 is claimed by a frame from a port, or
// from far end 3.
func claimed(id, name string, flags fdb.Flags, cfg *vswitch.VSIConfig, fromPort, delivered, moved bool) row {
	return row{id: id, name: name, wire: func(l *lab) {
		h, f, g := l.trio(cfg, floods{2, 3})
		o, at, claim := l.host(), l.dest(2), eth(nobody, rmac(1), "claim")
		l.set(rmac(1), at, flags)
		claimant := l.dest(3)
		if fromPort {
			claimant = h.At.Dest(0)
			h.Send(claim)
			g.got()
		} else {
			g.send(vx(vni, claim))
			h.Got()
		}
		f.got()
		if moved {
			at = claimant
		}
		if delivered {
			o.Want(claim)
			l.clean()
		} else {
			l.dropped("mac-pinned")
		}
		l.wantFDB(l.seg, table{rmac(1): at})
		l.check((l.seg.FDB().Stats().Refused == 1) == (flags != fdb.Control), "refused")
	}}
}

var forward = &vswitch.VSIConfig{ForwardPinned: true}

var pinRows = []row{
	claimed("4.static", "claimed by a local port", fdb.Static, nil, true, false, false),
	claimed("4.static", "claimed by another peer", fdb.Static, nil, false, false, false),
	claimed("4.sticky", "control, claimed by a local port", fdb.Control|fdb.Sticky, nil, true, false, false),
	claimed("4.sticky", "control, claimed by another peer", fdb.Control|fdb.Sticky, nil, false, false, false),
	claimed("4.pinned-forward", "static, local", fdb.Static, forward, true, true, false),
	claimed("4.pinned-forward", "static, tunnel", fdb.Static, forward, false, true, false),
	claimed("4.pinned-forward", "sticky, local", fdb.Control|fdb.Sticky, forward, true, true, false),
	claimed("4.pinned-forward", "sticky, tunnel", fdb.Control|fdb.Sticky, forward, false, true, false),
	claimed("4.control-local", "the host moved here", fdb.Control, nil, true, true, true),
	claimed("4.control-tunnel", "claimed by another peer", fdb.Control, nil, false, true, false),
	{id: "4.static", name: "a local host's MAC, claimed by a peer", wire: func(l *lab) {
		h, f := l.pair()
		l.set(h.MAC, h.At.Dest(0), fdb.Static)
		f.learnt(h.MAC)
		l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0)})
		h.Send(eth(nobody, h.MAC, "from where it is"))
		l.drops(map[string]uint64{"mac-pinned": 1, "no-peer": 1})
	}},
	{id: "4.static-hops", name: "a next hop with a VNI of its own, and a group of it and a peer", wire: func(l *lab) {
		l.start()
		h, f, g, x := l.host(), l.far(2), l.far(3), l.far(4)
		l.flood(2, 3, 4)
		hop := check.Must(l.VTEP.NextHop(l.at(2), 7))(l.T)
		group := check.Must(l.VTEP.Group(hop, l.peer(3)))(l.T)
		one, both := l.tun.Dest(hop), l.tun.Dest(group)
		l.set(rmac(1), one, fdb.Static)
		l.set(rmac(2), both, fdb.Control|fdb.Sticky)
		claim := func(i byte) []byte { return eth(nobody, rmac(i), "claim") }
		f.send(vx(vni, claim(1)), vx(vni, claim(2)))
		g.send(vx(vni, claim(2)))
		h.Want(claim(1), claim(2), claim(2))
		g.send(vx(vni, claim(1)))
		x.send(vx(vni, claim(1)))
		x.send(vx(vni, claim(2)))
		h.Send(claim(2))
		h.Want()
		l.drops(map[string]uint64{"mac-pinned": 4})
		l.wantFDB(l.seg, table{rmac(1): one, rmac(2): both})
	}},
	{id: "4.static", name: "with learning off", wire: func(l *lab) {
		h, f := l.pair(vswitch.AttachConfig{NoLearn: true})
		l.set(rmac(1), h.At.Dest(0), fdb.Static)
		f.learnt(rmac(1))
		l.dropped("mac-pinned")
	}},
	{id: "4.static", name: "claimed by a peer without a number", wire: func(l *lab) {
		h, f, g := l.trio(&vtep.Config{MaxPeers: 1})
		f.learnt(rmac(9))
		h.Got()
		l.set(rmac(1), l.dest(2), fdb.Static)
		g.learnt(rmac(1))
		l.dropped("mac-pinned")
	}},
	{id: "4.control-tunnel", name: "claimed by a peer without a number", wire: func(l *lab) {
		h, f, g := l.trio(&vtep.Config{MaxPeers: 1})
		f.learnt(rmac(9))
		l.set(rmac(1), l.dest(2), fdb.Control)
		g.learnt(rmac(1))
		check.Equal(l.T, "frames", len(h.Got()), 2)
		l.wantFDB(l.seg, table{rmac(9): l.dest(2), rmac(1): l.dest(2)})
	}},
	{id: "4.control-tunnel", name: "of a host here", wire: func(l *lab) {
		h, f := l.pair()
		l.set(h.MAC, h.At.Dest(0), fdb.Control)
		f.learnt(h.MAC)
		l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0)})
	}},

	filterRow("4.filter-from", "tunnel", rmac(1), true, nobody, rmac(1)),
	filterRow("4.filter-from", "port", rmac(1), false, frame.Broadcast, rmac(1)),
	filterRow("4.filter-to", "tunnel to port", rmac(1), true, rmac(1), rmac(2)),
	filterRow("4.filter-to", "port to tunnel", rmac(1), false, rmac(1), rmac(2)),
	filterRow("4.filter-to", "a group MAC", mcast, false, mcast, rmac(2)),
}

// filterRow has a filter drop a frame, whether its destination is known or flooded, or its
// source.
func filterRow(id, name string, filtered frame.MAC, fromTunnel bool, dst, src frame.MAC) row {
	return row{id: id, name: name, wire: func(l *lab) {
		h, f := l.pair(floods{2})
		l.host()
		l.set(filtered, 0, fdb.Filter)
		if fromTunnel {
			f.send(vx(vni, eth(dst, src, "")))
		} else {
			h.Send(eth(dst, src, ""))
		}
		l.dropped("filtered")
		e := l.entry(filtered)
		check.Equal(l.T, "still", e.Dest, frame.Filter)
	}}
}
