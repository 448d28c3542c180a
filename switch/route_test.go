package vswitch

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A hopper is a FIB that sends all packets to one Hop.
type hopper struct {
	mu      sync.Mutex
	hop     frame.Hop
	no      bool
	carried frame.Count
	f       func(frame.MAC)
}

func (h *hopper) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	copy(f.Bytes(), h.hop.Dst[:])
	copy(f.Bytes()[6:], h.hop.Src[:])
	f.VNI = h.hop.VNI
	return frame.Reenter
}

func (h *hopper) Lookup(_ frame.MAC, t frame.Tuple) (frame.Hop, func(frame.Count), bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hop, h.count, !h.no && (t.Protocol != 0 || !h.hop.Ports)
}

func (h *hopper) count(n frame.Count) {
	h.carried.Frames += n.Frames
	h.carried.Bytes += n.Bytes
}

func (h *hopper) Watch(f func(frame.MAC)) func() { h.f = f; return func() { h.f = nil } }

var gateMAC = frame.MAC{2, 0, 0, 0xfe, 0, 1}

// A routed lab has host 1 at port a of segment 1, and host 2 at port b of segment 2, with the hopper as gateway.
type routedLab struct {
	*lab
	o        *told
	h        *hopper
	a        *stub
	atA, atB *Attachment
	there    *VSI
	p        Pair
}

func withRouted(t *testing.T, test func(t *testing.T, l *routedLab)) {
	withOffload(t, func(l *lab, o *told) {
		r := &routedLab{lab: l, o: o, h: &hopper{hop: frame.Hop{VNI: 2, Dst: mac(2), Src: gateMAC}}}
		r.a, r.atA = l.port("a", 0)
		r.there = check.Must(l.s.VSI(2, nil))(t)
		r.atB = check.Must(r.there.Attach(newStub("b"), 0))(t)
		check.OK(t, r.there.FDB().Set(mac(2), r.atB.Dest(0), fdb.Static))
		check.OK(t, l.v.FDB().Set(gateMAC, 0, fdb.Static))
		check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Gateway: r.h}}))
		r.a.send(eth(frame.Broadcast, mac(1), 0x800))
		r.p = Pair{From: r.atA.Dest(0), Src: mac(1), Dst: gateMAC}
		r.p.Tuple, _ = frame.TupleOf(udp(gateMAC, mac(1), 4000, 53))
		test(t, r)
	})
}

// TestRoutedFlow: a Flow of routed frames is of their addresses, or where ports decide, of their Tuple; it is counted as the frames
// are, and Judges are asked with the MACs that frames have at their slots.
func TestRoutedFlow(t *testing.T) {
	withRouted(t, func(t *testing.T, l *routedLab) {
		hosts := l.p
		hosts.Tuple = hosts.Tuple.Hosts()
		f := check.Must(l.s.Flow(l.p))(t)
		if f.Pair != hosts || f.Hop != l.h.hop || f.VNI != 1 || f.To != l.atB.Dest(0) || f.MTU != 1514 {
			t.Errorf("%+v", f)
		}
		check.Equal(t, "the same, of the addresses", check.Must(l.s.Flow(hosts))(t).Pair, hosts)
		l.h.hop.Ports = true
		check.Equal(t, "with ports", check.Must(l.s.Flow(l.p))(t).Pair, l.p)
		_, err := l.s.Flow(hosts)
		check.ErrorIs(t, "without, where they decide", err, ErrGateway)
		l.h.hop.Ports = false

		counts := func() (list []uint64) {
			for _, p := range l.s.Stats().Ports {
				list = append(list, p.Rx.Frames, p.Rx.Bytes, p.Accepted.Frames, p.Accepted.Bytes, p.Tx.Frames, p.Tx.Bytes, p.Forwarded)
			}
			return list
		}
		b := udp(gateMAC, mac(1), 4000, 53)
		x := counts()
		l.a.send(b, b)
		y := counts()
		l.s.Carried(&f, frame.Count{Frames: 2, Bytes: 2 * uint64(len(b))})
		z := counts()
		changed := 0
		for i := range x {
			if y[i]-x[i] != z[i]-y[i] {
				t.Errorf("counter %d: %d by a frame, %d by Carried", i, y[i]-x[i], z[i]-y[i])
			}
			if y[i] != x[i] {
				changed++
			}
		}
		check.Equal(t, "counters that changed", changed, 7)
		check.Equal(t, "of the FIB", l.h.carried, frame.Count{Frames: 2, Bytes: 2 * uint64(len(b))})

		in, out := &macJudge{}, &macJudge{}
		check.OK(t, l.atA.Configure(AttachConfig{Slots: Slots{Ingress: in}}))
		check.Equal(t, "behind a Judge", check.Must(l.s.Flow(l.p))(t).Pair, l.p)
		check.OK(t, l.atA.Configure(AttachConfig{}))
		check.OK(t, l.atB.Configure(AttachConfig{Slots: Slots{Egress: out}}))
		check.Equal(t, "before a Judge", check.Must(l.s.Flow(l.p))(t).Pair, l.p)
		_, err = l.s.Flow(hosts)
		check.ErrorIs(t, "before a Judge, without ports", err, ErrStage)
		check.Equal(t, "MACs in", in.macs, [2]frame.MAC{mac(1), gateMAC})
		check.Equal(t, "MACs out", out.macs, [2]frame.MAC{gateMAC, mac(2)})
	})
}

// A macJudge is a Judge that remembers the MACs it was asked for.
type macJudge struct {
	judge
	macs [2]frame.MAC
}

func (j *macJudge) Judge(src, dst frame.MAC, t frame.Tuple) (func(frame.Count), bool) {
	j.macs = [2]frame.MAC{src, dst}
	return nil, true
}

// TestNoRoutedFlow names why packets to a gateway have no Flow.
func TestNoRoutedFlow(t *testing.T) {
	withRouted(t, func(t *testing.T, l *routedLab) {
		group := func(a *Attachment, g uint8) { check.OK(t, a.Configure(AttachConfig{Group: g})) }
		for _, x := range []struct {
			name     string
			do, undo func()
			want     error
		}{
			{"none", func() {}, func() {}, nil},
			{"no route", func() { l.h.no = true }, func() { l.h.no = false }, ErrGateway},
			{"to no segment", func() { l.h.hop.VNI = 9 }, func() { l.h.hop.VNI = 2 }, ErrGateway},
			{"to an unknown host", func() { l.h.hop.Dst = mac(7) }, func() { l.h.hop.Dst = mac(2) }, ErrUnknownMAC},
			{"to a filtered host", func() { check.OK(t, l.there.FDB().Set(mac(2), 0, fdb.Filter)) },
				func() { check.OK(t, l.there.FDB().Set(mac(2), l.atB.Dest(0), fdb.Static)) }, ErrDropped},
			{"to another gateway", func() { check.OK(t, l.there.FDB().Set(mac(2), 0, fdb.Static)) },
				func() { check.OK(t, l.there.FDB().Set(mac(2), l.atB.Dest(0), fdb.Static)) }, ErrGateway},
			{"another stage", func() { check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Gateway: Chain(l.h, say(frame.Continue))}})) },
				func() { check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Gateway: l.h}})) }, ErrGateway},
			{"a stage at the way out", func() { check.OK(t, l.atB.Configure(AttachConfig{Slots: Slots{Egress: say(frame.Continue)}})) },
				func() { check.OK(t, l.atB.Configure(AttachConfig{})) }, ErrStage},
			{"isolated in one segment from another", func() { group(l.atA, 2); group(l.atB, 2) }, func() { group(l.atA, 0); group(l.atB, 0) }, nil},
			{"as before", func() {}, func() {}, nil},
		} {
			x.do()
			_, err := l.s.Flow(l.p)
			check.ErrorIs(t, x.name, err, x.want)
			x.undo()
		}
		all := l.p
		all.Tuple = frame.Tuple{}
		_, err := l.s.Flow(all)
		check.ErrorIs(t, "of all packets", err, ErrGateway)

		// Within a segment, the gateway does not join isolated ports, unless a setting says so; nor a port with itself.
		_, atC := l.port("c", 0)
		check.OK(t, l.v.FDB().Set(mac(3), atC.Dest(0), fdb.Static))
		l.h.hop = frame.Hop{VNI: 1, Dst: mac(3), Src: gateMAC}
		check.Must(l.s.Flow(l.p))(t)
		group(l.atA, GroupIsolated)
		group(atC, GroupIsolated)
		_, err = l.s.Flow(l.p)
		check.ErrorIs(t, "isolated", err, ErrDropped)
		check.OK(t, l.v.Configure(VSIConfig{RouteIsolated: true, Slots: Slots{Gateway: l.h}}))
		check.Must(l.s.Flow(l.p))(t)
		check.OK(t, l.v.FDB().Set(mac(3), l.atA.Dest(0), fdb.Static))
		group(l.atA, 0)
		if f := check.Must(l.s.Flow(l.p))(t); f.To != l.atA.Dest(0) {
			t.Errorf("back to where it came from: %+v", f)
		}
	})
}

// TestHintsOfRoutes: routed packets are hinted by the MACs they came with.
func TestHintsOfRoutes(t *testing.T) {
	withRouted(t, func(t *testing.T, l *routedLab) {
		for i := range uint16(16) {
			l.a.send(udp(gateMAC, mac(1), 4000+i, 53)) // one of each tuple
		}
		check.Equal(t, "hints", len(l.o.hints), 2)
		if got := l.o.hints[0]; got.Tuple.Hosts() != l.p.Tuple.Hosts() || got.From != l.p.From || got.Src != mac(1) || got.Dst != gateMAC {
			t.Errorf("%+v", got)
		}
		l.o.hints = nil
		check.OK(t, l.atB.Configure(AttachConfig{Slots: Slots{Egress: &judge{}}}))
		for i := range uint16(16) {
			l.a.send(udp(gateMAC, mac(1), 4000+i, 0), udp(gateMAC, mac(1), 4000, 0))
		}
		check.True(t, len(l.o.hints) == 2 && l.o.hints[0].Tuple.SrcPort == 4000, "where ports matter: %+v", l.o.hints)
		l.o.hints = nil
		check.OK(t, l.atB.Configure(AttachConfig{Slots: Slots{Egress: say(frame.Continue)}}))
		for range 16 {
			l.a.send(udp(gateMAC, mac(1), 4000, 53))
		}
		check.Equal(t, "hints before another stage", len(l.o.hints), 0)
	})
}

// TestRerouted: what the FIB says is told on, and it is watched while it is in a slot.
func TestRerouted(t *testing.T) {
	withRouted(t, func(t *testing.T, l *routedLab) {
		check.True(t, l.h.f == nil, "watched before it is asked")
		check.Must(l.s.Flow(l.p))(t)
		check.Need(t, l.h.f != nil, "not watched")
		l.o.macs, l.o.all = map[frame.MAC]int{}, 0
		l.h.f(mac(2))
		check.Equal(t, "told of the next hop", l.o.macs[mac(2)], 1)
		check.Equal(t, "told of all", l.o.all, 0)
		l.h.f(frame.MAC{})
		check.Equal(t, "told of all", l.o.all, 1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		check.True(t, l.h.f != nil, "not watched any more")
		check.OK(t, l.v.Configure(VSIConfig{}))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		check.True(t, l.h.f == nil, "watched without a slot")
	})
}
