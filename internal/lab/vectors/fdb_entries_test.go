package vectors

import (
	"bytes"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// learnt makes f send frames from MACs of its own, so that they are learned there.
func (f *far) learnt(macs ...frame.MAC) {
	f.l.T.Helper()
	for _, m := range macs {
		f.send(vx(vni, eth(nobody, m, "hello")))
	}
}

var entryRows = []row{
	{id: "4.key", name: "one MAC in two VNIs", wire: func(l *lab) {
		l.start()
		other, tun := l.join(200)
		h, o, f, g := l.host(), l.Host(200), l.far(2), l.far(3)
		f.send(vx(100, in1))
		g.send(vx(200, in1))
		h.Want(in1)
		o.Want(in1)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		l.wantFDB(other, table{rmac(1): tun.Dest(l.peer(3))})
		a, b := eth(rmac(1), h.MAC, "to 2"), eth(rmac(1), o.MAC, "to 3")
		h.Send(a)
		o.Send(b)
		f.want(vx(100, a))
		g.want(vx(200, b))
		check.Equal(l.T, "moves", l.seg.FDB().Stats().Moved+other.FDB().Stats().Moved, 0)
	}},
	{id: "4.key", name: "a host here and in another VNI there", wire: func(l *lab) {
		l.start()
		other, tun := l.join(200)
		h, f := l.host(), l.far(2)
		h.Send(eth(nobody, h.MAC, ""))
		f.send(vx(200, eth(nobody, h.MAC, "")))
		l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0)})
		l.wantFDB(other, table{h.MAC: tun.Dest(l.peer(2))})
	}},
	{id: "4.entry", name: "learned", wire: func(l *lab) {
		h, f := l.pair()
		l.pass(5*time.Second + 500*time.Millisecond)
		f.learnt(rmac(1))
		h.Send(eth(nobody, h.MAC, ""))
		for m, d := range map[frame.MAC]frame.Dest{rmac(1): l.dest(2), h.MAC: h.At.Dest(0)} {
			check.Equal(l.T, "entry", l.entry(m), fdb.Entry{MAC: m, Dest: d, Origin: fdb.OriginLearned, Seen: 5})
		}
	}},
	entryRow("static", fdb.Static, fdb.OriginStatic),
	entryRow("control", fdb.Control, fdb.OriginControl),
	entryRow("control, sticky", fdb.Control|fdb.Sticky, fdb.OriginControl),
	{id: "4.entry", name: "filter", local: func(l *lab) {
		l.bridge()
		l.set(rmac(1), 0, fdb.Filter)
		e := l.entry(rmac(1))
		l.check(e.Dest == frame.Filter && e.Flags == fdb.Filter && e.Origin == fdb.OriginStatic, "%+v", e)
	}},
}

func entryRow(name string, flags fdb.Flags, origin fdb.Origin) row {
	return row{id: "4.entry", name: name, wire: func(l *lab) {
		h, f := l.pair()
		at := l.listed(2)
		l.set(rmac(1), at, flags)
		check.Equal(l.T, "entry", l.entry(rmac(1)), fdb.Entry{MAC: rmac(1), Dest: at, Origin: origin, Flags: flags})
		l.passes(h, eth(rmac(1), h.MAC, "used"), f)
	}}
}

// agesRow has two MACs, one behind the tunnel and one here, age together.
func agesRow(name string, cfg *vswitch.VSIConfig, age time.Duration) row {
	return row{id: "4.ageing", name: name, wire: func(l *lab) {
		l.start(cfg)
		h, f, w := l.host(), l.far(2), l.watch()
		f.learnt(rmac(1))
		h.Send(eth(nobody, h.MAC, ""))
		f.got()
		w.got()
		l.pass(age - 2*time.Second)
		d := l.dest(2)
		l.wantFDB(l.seg, table{rmac(1): d, h.MAC: h.At.Dest(0)})
		l.pass(4 * time.Second)
		l.wantFDB(l.seg, table{})
		evs := w.got()
		slices.SortFunc(evs, func(a, b frame.Event) int { return bytes.Compare(a.MAC[:], b.MAC[:]) })
		want := []frame.Event{
			{Kind: frame.EventMACAged, VNI: vni, MAC: h.MAC, Dest: h.At.Dest(0)},
			{Kind: frame.EventMACAged, VNI: vni, MAC: rmac(1), Dest: d},
		}
		l.check(slices.Equal(evs, want), "events %+v, want %+v", evs, want)
		check.Equal(l.T, "aged", l.seg.FDB().Stats().Aged, 2)
	}}
}

var ageRows = []row{
	agesRow("default", nil, 300*time.Second),
	agesRow("ten seconds", &vswitch.VSIConfig{Ageing: 10 * time.Second}, 10*time.Second),
	agesRow("an hour", &vswitch.VSIConfig{Ageing: time.Hour}, time.Hour),
	{id: "4.ageing", name: "never", wire: func(l *lab) {
		l.start(&vswitch.VSIConfig{Ageing: -1})
		f := l.far(2)
		f.learnt(rmac(1))
		l.pass(2 * time.Hour)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
	}},
	{id: "4.ageing", name: "changed at run time", wire: func(l *lab) {
		l.start()
		f := l.far(2)
		f.learnt(rmac(1))
		l.pass(20 * time.Second)
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
		l.must(l.seg.Configure(vswitch.VSIConfig{Ageing: 10 * time.Second}))
		l.pass(2 * time.Second)
		l.wantFDB(l.seg, table{})
	}},
	{id: "4.ageing-reception", name: "frames from it keep it", wire: func(l *lab) {
		l.start()
		f := l.far(2)
		for range 5 {
			f.learnt(rmac(1))
			l.pass(200 * time.Second)
		}
		l.wantFDB(l.seg, table{rmac(1): l.dest(2)})
	}},
	{id: "4.ageing-reception", name: "frames to it do not", wire: func(l *lab) {
		h, f := l.pair()
		f.learnt(rmac(1))
		for range 31 {
			l.pass(10 * time.Second)
			h.Send(eth(rmac(1), h.MAC, "are you there"))
		}
		l.wantFDB(l.seg, table{h.MAC: h.At.Dest(0)})
	}},
	{id: "4.ageing-reception", name: "frames it was refused for do not", wire: func(l *lab) {
		l.start()
		f := l.far(2)
		f.learnt(rmac(1))
		for range 31 {
			l.pass(10 * time.Second)
			f.send(vx(77, eth(nobody, rmac(1), "")))
			f.send(header([8]byte{0, 0, 0, 0, 0, 0, vni, 0}, eth(nobody, rmac(1), "")))
		}
		l.wantFDB(l.seg, table{})
	}},
	pinnedStays("static", fdb.Static), pinnedStays("control", fdb.Control), pinnedStays("control, sticky", fdb.Control|fdb.Sticky),
	{id: "4.ageing-pinned", name: "filter", local: func(l *lab) {
		l.bridge()
		l.set(rmac(1), 0, fdb.Filter)
		l.pass(time.Hour)
		l.wantFDB(l.seg, table{rmac(1): frame.Filter})
	}},
	{id: "4.tick", name: "once a second", wire: func(l *lab) {
		l.start()
		f := l.far(2)
		l.pass(50 * time.Millisecond)
		for i := range 30 { // three ticks
			f.learnt(rmac(1))
			check.Equal(l.T, "seen", l.entry(rmac(1)).Seen, frame.Tick(i/10))
			l.pass(100 * time.Millisecond)
		}
		st := l.seg.FDB().Stats()
		l.check(st.Learned == 1 && st.Moved == 0 && st.Busy == 0, "%+v", st)
	}},
}

func pinnedStays(name string, f fdb.Flags) row {
	return row{id: "4.ageing-pinned", name: name, wire: func(l *lab) {
		l.start()
		at := l.listed(2)
		l.set(rmac(1), at, f)
		l.pass(2 * time.Hour)
		l.wantFDB(l.seg, table{rmac(1): at})
	}}
}
