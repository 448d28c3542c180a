package vswitch

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// told is an Offload that remembers what it was told.
type told struct {
	mu      sync.Mutex
	hints   []Pair
	all     int
	macs    map[frame.MAC]int
	settled int
}

func (o *told) Hint(p Pair) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hints = append(o.hints, p)
}

func (o *told) Changed(_ frame.VNI, m frame.MAC) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m.IsZero() {
		o.all++
		return
	}
	o.macs[m]++
}

func (o *told) Settle() { o.settled++ }

func withOffload(t *testing.T, test func(l *lab, o *told)) {
	inLab(t, func(l *lab) {
		o := &told{macs: map[frame.MAC]int{}}
		check.OK(t, l.s.SetOffload(o))
		test(l, o)
	})
}

// TestHints: a pair is hinted at every eighth frame that is forwarded, and only where nothing but the pair decides.
func TestHints(t *testing.T) {
	withOffload(t, func(l *lab, o *told) {
		a, atA := l.port("a", 0)
		b, atB := l.port("b", 0)
		tun := &stubTunnel{stub: newStub("t")}
		atT := check.Must(l.v.Attach(tun, 7))(t)
		a.send(eth(frame.Broadcast, mac(1), 0x800))
		b.send(eth(frame.Broadcast, mac(2), 0x800))
		tun.send(fromPeer(3, 7, eth(frame.Broadcast, mac(3), 0x800)))
		for range 7 {
			a.send(eth(mac(2), mac(1), 0x800), eth(mac(99), mac(1), 0x800), eth(frame.Broadcast, mac(1), 0x800))
			tun.send(fromPeer(3, 7, eth(mac(1), mac(3), 0x800)), fromPeer(0, 7, eth(mac(1), mac(4), 0x800)))
		}
		if len(o.hints) != 0 {
			t.Fatalf("hinted after 7 frames: %v", o.hints)
		}
		ab := Pair{atA.Dest(0), 0, mac(1), mac(2), frame.Tuple{}}
		ta := Pair{atT.Dest(3), 7, mac(3), mac(1), frame.Tuple{}}
		for range 9 {
			a.send(eth(mac(2), mac(1), 0x800))
			tun.send(fromPeer(3, 7, eth(mac(1), mac(3), 0x800)))
		}
		if want := []Pair{ab, ta, ab, ta}; !slices.Equal(o.hints, want) {
			t.Errorf("hints %v, want %v", o.hints, want)
		}
		f := check.Must(l.s.Flow(ab))(t)
		if f.To != atB.Dest(0) || f.In != Port(a) || f.Out != Port(b) || f.VNI != 1 || f.MTU != 1514 || f.OutTag != 0 {
			t.Errorf("%+v", f)
		}
		o.hints = nil
		for range 16 {
			f := frame.Make(eth(mac(2), mac(1), 0x800))
			check.Need(t, l.s.Inject(l.v, &f), "not injected")
			synctest.Wait()
		}
		if len(o.hints) != 0 {
			t.Errorf("what the switch sent itself was hinted: %v", o.hints)
		}
		check.OK(t, atA.Configure(AttachConfig{Slots: Slots{Ingress: say(frame.Continue)}}))
		for range 16 {
			a.send(eth(mac(2), mac(1), 0x800))
		}
		if len(o.hints) != 0 {
			t.Errorf("hinted behind a stage: %v", o.hints)
		}
	})
}

// TestNoFlow names why a pair has no Flow.
func TestNoFlow(t *testing.T) {
	withOffload(t, func(l *lab, o *told) {
		a, atA := l.port("a", 0)
		b, atB := l.port("b", 0)
		a.send(eth(frame.Broadcast, mac(1), 0x800))
		b.send(eth(frame.Broadcast, mac(2), 0x800))
		ab := Pair{atA.Dest(0), 0, mac(1), mac(2), frame.Tuple{}}
		stage := Slots{Egress: say(frame.Continue)}
		for _, x := range []struct {
			name string
			p    Pair
			do   func() (undo func())
			want error
		}{
			{"known", ab, nil, nil},
			{"no port", Pair{frame.NewDest(77, 0), 0, mac(1), mac(2), frame.Tuple{}}, nil, ErrNoAttachment},
			{"the switch", Pair{0, 1, mac(1), mac(2), frame.Tuple{}}, nil, ErrNoAttachment},
			{"no tag", Pair{atA.Dest(0), 5, mac(1), mac(2), frame.Tuple{}}, nil, ErrNoAttachment},
			{"unknown source", Pair{atA.Dest(0), 0, mac(9), mac(2), frame.Tuple{}}, nil, ErrUnknownMAC},
			{"source elsewhere", Pair{atA.Dest(0), 0, mac(2), mac(1), frame.Tuple{}}, nil, ErrUnknownMAC},
			{"unknown destination", Pair{atA.Dest(0), 0, mac(1), mac(9), frame.Tuple{}}, nil, ErrUnknownMAC},
			{"to itself", Pair{atA.Dest(0), 0, mac(1), mac(1), frame.Tuple{}}, nil, ErrDropped},
			{"group", Pair{atA.Dest(0), 0, mac(1), frame.Broadcast, frame.Tuple{}}, nil, ErrDropped},
			{"capture", ab, func() func() { l.s.SetTap(noTap{}); return func() { l.s.SetTap(nil) } }, ErrWatched},
			{"trace", ab, func() func() { tr := check.Must(l.s.Trace(nil))(t); return func() { tr.Close() } }, ErrWatched},
			{"egress stage", ab, func() func() {
				check.OK(t, atB.Configure(AttachConfig{Slots: stage}))
				return func() { check.OK(t, atB.Configure(AttachConfig{})) }
			}, ErrStage},
			{"ingress stage of the segment", ab, func() func() {
				check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Ingress: say(frame.Continue)}}))
				return func() { check.OK(t, l.v.Configure(VSIConfig{})) }
			}, ErrStage},
			{"group policy", ab, func() func() {
				check.OK(t, atA.Configure(AttachConfig{GBP: 5}))
				return func() { check.OK(t, atA.Configure(AttachConfig{})) }
			}, ErrTag},
			{"filter", ab, func() func() {
				check.OK(t, l.v.FDB().Set(mac(2), 0, fdb.Filter))
				return func() { l.v.FDB().Delete(mac(2)); b.send(eth(frame.Broadcast, mac(2), 0x800)) }
			}, ErrDropped},
			{"the switch's own", ab, func() func() {
				check.OK(t, l.v.FDB().Set(mac(2), 0, fdb.Static))
				return func() { l.v.FDB().Delete(mac(2)); b.send(eth(frame.Broadcast, mac(2), 0x800)) }
			}, ErrGateway},
			{"locked", ab, func() func() {
				check.OK(t, atA.Configure(AttachConfig{Locked: true}))
				return func() { check.OK(t, atA.Configure(AttachConfig{})) }
			}, ErrDropped},
			{"isolated", ab, func() func() {
				check.OK(t, atA.Configure(AttachConfig{Group: GroupIsolated}))
				check.OK(t, atB.Configure(AttachConfig{Group: GroupIsolated}))
				return func() { check.OK(t, atA.Configure(AttachConfig{})); check.OK(t, atB.Configure(AttachConfig{})) }
			}, ErrDropped},
			{"as before", ab, nil, nil},
		} {
			undo := func() {}
			if x.do != nil {
				undo = x.do()
			}
			if _, err := l.s.Flow(x.p); err != x.want {
				t.Errorf("%s: %v, want %v", x.name, err, x.want)
			}
			undo()
		}
	})
}

// TestFlowOfGroup: a peer that the number of a MAC's entry stands for, or that sends in place of a control entry's, has a Flow. The entry
// stays, which is what the switch does with a frame.
func TestFlowOfGroup(t *testing.T) {
	withOffload(t, func(l *lab, o *told) {
		a, atA := l.port("a", 0)
		a.send(eth(frame.Broadcast, mac(1), 0x800))
		tun := &leadingTunnel{stubTunnel{stub: newStub("t")}}
		atT := check.Must(l.v.Attach(tun, 7))(t)
		for _, x := range []struct {
			name  string
			flags fdb.Flags
			peer  uint16
			want  error
		}{
			{"member, static", fdb.Static, 3, nil},
			{"stranger, static", fdb.Static, 5, ErrUnknownMAC},
			{"member, control", fdb.Control, 3, nil},
			{"stranger, control", fdb.Control, 5, nil},
			{"stranger, sticky", fdb.Control | fdb.Sticky, 5, ErrUnknownMAC},
		} {
			l.v.FDB().Delete(mac(3))
			check.OK(t, l.v.FDB().Set(mac(3), atT.Dest(100), x.flags))
			a.sent()
			tun.send(fromPeer(x.peer, 7, eth(mac(1), mac(3), 0x800)))
			if n := len(a.sent()); (n == 1) != (x.want == nil) {
				t.Errorf("%s: the switch forwards %d frames", x.name, n)
			}
			f, err := l.s.Flow(Pair{atT.Dest(x.peer), 7, mac(3), mac(1), frame.Tuple{}})
			if err != x.want || err == nil && f.To != atA.Dest(0) {
				t.Errorf("%s: to %v, %v, want %v", x.name, f.To, err, x.want)
				continue
			}
			if err == nil {
				l.s.Carried(&f, frame.Count{Frames: 1, Bytes: 14})
			}
			d, _ := l.v.FDB().Lookup(mac(3))
			check.Equal(t, x.name+": entry", d, atT.Dest(100))
		}
	})
}

// A leadingTunnel has the number 100, which stands for peer 3 among others.
type leadingTunnel struct{ stubTunnel }

func (*leadingTunnel) Leads(to, peer uint16) bool { return to == 100 && peer == 3 }

type noTap struct{}

func (noTap) Frame(frame.VNI, string, *frame.Frame) {}

// TestChanged: whatever may change a decision voids it, after the change.
func TestChanged(t *testing.T) {
	withOffload(t, func(l *lab, o *told) {
		a, atA := l.port("a", 0)
		b, _ := l.port("b", 0)
		_, atC := l.port("c", 0)
		atT := check.Must(l.v.Attach(&stubTunnel{stub: newStub("t")}, 7))(t)
		third := check.Must(l.s.VSI(3, nil))(t)
		learn := func() {
			a.send(eth(frame.Broadcast, mac(1), 0x800))
			b.send(eth(frame.Broadcast, mac(2), 0x800))
		}
		for _, x := range []struct {
			name string
			do   func()
			mac  frame.MAC // zero: all
		}{
			{"move", func() { b.send(eth(frame.Broadcast, mac(1), 0x800)) }, mac(1)},
			{"delete", func() { l.v.FDB().Delete(mac(2)) }, mac(2)},
			{"static", func() { check.OK(t, l.v.FDB().Set(mac(2), atA.Dest(0), fdb.Static)) }, mac(2)},
			{"static deleted", func() { l.v.FDB().Delete(mac(2)) }, mac(2)},
			{"filter", func() { check.OK(t, l.v.FDB().Set(mac(1), 0, fdb.Filter)) }, mac(1)},
			{"filter deleted", func() { l.v.FDB().Delete(mac(1)) }, mac(1)},
			{"aged", func() { l.v.FDB().Sweep(1e6, 4096) }, mac(1)},
			{"flush of all", func() { l.s.Flush() }, frame.MAC{}},
			{"flush of a segment", func() { l.v.Flush() }, frame.MAC{}},
			{"flush of a port", func() { check.OK(t, l.s.FlushPort(a)) }, frame.MAC{}},
			{"flush of a peer", func() { check.OK(t, l.s.FlushPeer(atT.Dest(3))) }, frame.MAC{}},
			{"limit", func() { check.OK(t, l.v.Configure(VSIConfig{MaxMACs: 1})) }, mac(1)},
			{"segment", func() { check.OK(t, l.v.Configure(VSIConfig{})) }, frame.MAC{}},
			{"attachment", func() { check.OK(t, atA.Configure(AttachConfig{Group: 7})) }, frame.MAC{}},
			{"capture", func() { l.s.SetTap(noTap{}) }, frame.MAC{}},
			{"trace", func() { check.Must(l.s.Trace(nil))(t) }, frame.MAC{}},
			{"the switch's own", func() { check.OK(t, l.v.FDB().Set(mac(9), 0, fdb.Static)) }, frame.MAC{}},
			{"the switch's own, deleted", func() { l.v.FDB().Delete(mac(9)) }, frame.MAC{}},
			{"another member", func() { check.Must(third.Attach(newStub("d"), 0))(t) }, frame.MAC{}},
			{"detach", func() { check.OK(t, atC.Detach()) }, frame.MAC{}},
			{"segment deleted", func() { check.OK(t, third.Delete()) }, frame.MAC{}},
		} {
			learn()
			o.macs, o.all = map[frame.MAC]int{}, 0
			x.do()
			if x.mac.IsZero() && o.all == 0 || !x.mac.IsZero() && o.macs[x.mac] == 0 && o.macs[mac(2)] == 0 {
				t.Errorf("%s: told of %v, %d times of all", x.name, o.macs, o.all)
			}
		}
		if o.settled == 0 {
			t.Error("detach did not wait for the offload")
		}
		learn()
		o.macs, o.all = map[frame.MAC]int{}, 0
		for range 20 {
			a.send(eth(mac(2), mac(1), 0x800))
		}
		if len(o.macs)+o.all > 0 {
			t.Errorf("forwarding changed %v, %d", o.macs, o.all)
		}
	})
}

// TestCarried: frames that an Offload carried are in the counters, as if the switch had forwarded them, and refresh the source.
func TestCarried(t *testing.T) {
	for _, tags := range [][2]uint32{{0, 0}, {5, 0}, {0, 5}, {5, 6}} {
		carried(t, tags[0], tags[1])
	}
}

func carried(t *testing.T, tagA, tagB uint32) {
	tagged := func(tag uint32, b []byte) []byte {
		if tag == 0 {
			return b
		}
		return append(append(bytes.Clone(b[:12]), 0x81, 0, 0, byte(tag)), b[12:]...)
	}
	withOffload(t, func(l *lab, o *told) {
		a, atA := l.port("a", tagA)
		b, _ := l.port("b", tagB)
		a.send(tagged(tagA, eth(frame.Broadcast, mac(1), 0x800)))
		b.send(tagged(tagB, eth(frame.Broadcast, mac(2), 0x800)))
		frames := [][]byte{tagged(tagA, eth(mac(2), mac(1), 0x800, 1, 2, 3)), tagged(tagA, eth(mac(2), mac(1), 0x800))}
		counts := func() (list []uint64) {
			st := l.s.Stats()
			for _, p := range st.Ports {
				list = append(list, p.Rx.Frames, p.Rx.Bytes, p.Accepted.Frames, p.Accepted.Bytes, p.Tx.Frames, p.Tx.Bytes, p.Forwarded)
			}
			for _, v := range st.VSIs {
				list = append(list, v.Rx.Frames, v.Rx.Bytes, v.Tx.Frames, v.Tx.Bytes)
			}
			return list
		}
		x := counts()
		a.send(frames...)
		y := counts()
		f := check.Must(l.s.Flow(Pair{atA.Dest(0), tagA, mac(1), mac(2), frame.Tuple{}}))(t)
		l.s.Carried(&f, frame.Count{Frames: 2, Bytes: 17 + 14})
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
		if changed != 11 {
			t.Errorf("%d counters changed: %v, %v", changed, x, y)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait() // the tick of this second is counted
		l.s.Carried(&f, frame.Count{Frames: 1, Bytes: 14})
		if e, _ := l.v.FDB().Get(mac(1)); e.Age(l.s.Tick()) != 0 {
			t.Errorf("source seen %d s ago", e.Age(l.s.Tick()))
		}
		if e, _ := l.v.FDB().Get(mac(2)); e.Age(l.s.Tick()) < 19 {
			t.Error("the destination was seen")
		}
	})
}

func TestSetOffloadClosed(t *testing.T) {
	s := check.Must(New(nil))(t)
	s.Close()
	if err := s.SetOffload(&told{}); err == nil || errors.Unwrap(err) == nil {
		t.Errorf("error %v", err)
	}
}
