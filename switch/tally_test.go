package vswitch

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// wantSums fails the test unless the attachments of each port and of each VSI add up.
func (s *Switch) wantSums(t testing.TB) {
	t.Helper()
	ports, st, left := map[uint16]traffic{}, s.Stats(), false
	for i, v := range st.VSIs {
		sum := s.VSIs()[i].past
		left = left || sum != (traffic{})
		for _, a := range v.Attachments {
			sum.add(traffic{a.Rx, a.Tx})
			p := ports[a.Port]
			p.add(traffic{a.Rx, a.Tx})
			ports[a.Port] = p
		}
		if sum != (traffic{v.Rx, v.Tx}) {
			t.Errorf("VSI %d: all its attachments have %+v, it has %+v %+v", v.VNI, sum, v.Rx, v.Tx)
		}
	}
	for _, p := range st.Ports {
		if got := ports[p.Port]; p.Port != 0 && !left && got != (traffic{p.Accepted, p.Tx}) {
			t.Errorf("port %s: its attachments have %+v, it has %+v %+v", p.Name, got, p.Accepted, p.Tx)
		}
	}
}

// want compares the counts of an attachment: frames and bytes in, frames and bytes out.
func (a *Attachment) want(t testing.TB, what string, n [4]uint64) {
	t.Helper()
	s := a.Stats()
	if got := [4]uint64{s.Rx.Frames, s.Rx.Bytes, s.Tx.Frames, s.Tx.Bytes}; got != n || s.Port != a.port.num || s.Tag != a.tag {
		t.Errorf("%s: %v, want %v: %+v", what, got, n, s)
	}
}

// inVLAN returns a frame of n bytes with a VLAN tag.
func inVLAN(dst, src frame.MAC, vlan byte, n int) []byte {
	return eth(dst, src, 0x8100, append([]byte{0, vlan, 8, 0}, make([]byte, n-18)...)...)
}

// Frames of two segments, in turn in one batch of a trunk: known and flooded ones, drops at the entrance and on the way.
func TestTallies(t *testing.T) {
	t.Run("plain", func(t *testing.T) { tallyFrames(t, false) })
	t.Run("traced", func(t *testing.T) { tallyFrames(t, true) })
}

func tallyFrames(t *testing.T, traced bool) {
	inLab(t, func(l *lab) {
		if traced {
			defer check.Must(l.s.Trace(nil))(l.t).Close()
		}
		two := check.Must(l.s.VSI(2, nil))(l.t)
		trunk, t1 := l.port("trunk", 10)
		t2 := check.Must(two.Attach(trunk, 20))(l.t)
		b, b1 := l.port("b", 0)
		_, c1 := l.port("c", 0)
		d := newStub("d")
		d2 := check.Must(two.Attach(d, 0))(l.t)
		b.send(eth(frame.Broadcast, mac(2), 0x88b5, make([]byte, 46)...)) // 60 bytes, to trunk and c
		d.send(eth(frame.Broadcast, mac(3), 0x88b5, make([]byte, 46)...)) // to trunk
		trunk.send(
			inVLAN(mac(2), mac(1), 10, 104),          // to b, 100 there
			inVLAN(mac(3), mac(1), 20, 204),          // to d, 200 there
			inVLAN(mac(2), mac(1), 10, 304),          // to b, 300 there
			inVLAN(mac(2), frame.Broadcast, 10, 100), // bad source
			inVLAN(mac(2), mac(1), 30, 100),          // in no segment
			inVLAN(mac(1), mac(1), 20, 100),          // back where it came from
			inVLAN(frame.Broadcast, mac(1), 20, 64),  // to d, 60 there
			[]byte{1, 2, 3},                          // untagged, in no segment
			inVLAN(frame.Broadcast, mac(1), 10, 64),  // to b and c, 60 there
		)
		t1.want(t, "trunk, 10", [4]uint64{3, 104 + 304 + 64, 1, 60})
		t2.want(t, "trunk, 20", [4]uint64{2, 204 + 64, 1, 60})
		b1.want(t, "b", [4]uint64{1, 60, 3, 460})
		c1.want(t, "c", [4]uint64{0, 0, 2, 120})
		d2.want(t, "d", [4]uint64{1, 60, 2, 260})
		l.wantAccounts()
		if st := l.v.Stats(); st.VNI != 1 || len(st.Attachments) != 3 || st.Rx != (frame.Count{Frames: 4, Bytes: 532}) || st.Tx != (frame.Count{Frames: 6, Bytes: 640}) ||
			st.Attachments[1] != b1.Stats() || st.Drops[frame.BadSourceMAC] != 1 {
			t.Errorf("%+v", st)
		}
		f := frame.Make(eth(frame.Broadcast, mac(9), 0x88b5, make([]byte, 46)...)) // from the switch itself: to trunk, b and c
		check.True(t, l.s.Inject(l.v, &f), "no room")
		synctest.Wait()
		if st := l.v.Stats(); st.Rx.Frames != 4 || st.Tx.Frames != 9 {
			t.Errorf("injected: %+v", st)
		}
		l.wantAccounts()
	})
}

// A gateway takes a frame into another segment: it comes in in one and leaves in the other. What is dropped there has not
// come in.
func TestTalliesRouted(t *testing.T) {
	inLab(t, func(l *lab) {
		two := check.Must(l.s.VSI(2, nil))(l.t)
		a, at := l.port("a", 0)
		b := newStub("b")
		bt := check.Must(two.Attach(b, 0))(l.t)
		check.OK(t, l.v.FDB().Set(mac(7), 0, fdb.Static))
		check.OK(t, two.FDB().Set(mac(2), bt.Dest(0), fdb.Static))
		check.OK(t, two.FDB().Set(mac(3), frame.Filter, fdb.Static))
		check.OK(t, l.v.Configure(VSIConfig{Slots: Slots{Gateway: router{}}}))
		to := func(n byte) []byte { return eth(mac(7), mac(1), 0x800, append([]byte{n}, make([]byte, 85)...)...) }
		a.send(to(2), to(3), to(2), to(4)) // 4 is flooded
		at.want(t, "in", [4]uint64{3, 300, 0, 0})
		bt.want(t, "out", [4]uint64{0, 0, 3, 300})
		one, other := l.v.Stats(), two.Stats()
		if one.Tx.Frames != 0 || other.Rx.Frames != 0 || other.Drops[frame.Filtered] != 1 || one.Rx.Frames != 3 || other.Tx.Frames != 3 {
			t.Errorf("%+v\n%+v", one, other)
		}
		l.wantAccounts()
	})
}

// router routes into segment 2, to the MAC that ends with the first byte of the packet.
type router struct{}

func (router) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	m, gw := mac(f.Bytes()[14]), mac(7)
	copy(f.Bytes(), m[:])
	copy(f.Bytes()[6:], gw[:])
	f.VNI = 2
	return frame.Reenter
}

// supers is a stub that reads superframes.
type supers struct {
	*stub
	f *frame.Frame
}

func (s supers) Readers() []frame.Reader { return []frame.Reader{s} }

func (s supers) Read(b *frame.Batch) error {
	if err := s.stub.Read(b); err != nil {
		return err
	}
	b.Reset()
	f := b.New(s.f.Len())
	copy(f.Bytes(), s.f.Bytes())
	f.GSO = s.f.GSO
	return nil
}

// A superframe is one frame, whether the port takes it whole or in pieces.
func TestTalliesOfSuperframes(t *testing.T) {
	inLab(t, func(l *lab) {
		k := flows()[0]
		segments := k.segments(t, 5, 1400)
		in := supers{newStub("in"), k.super(t, segments)}
		whole, pieces := &far{takes: frame.OffloadAll}, &far{}
		whole.stub, pieces.stub = *newStub("whole"), *newStub("pieces")
		from := check.Must(l.v.Attach(in, 0))(l.t)
		wt := check.Must(l.v.Attach(whole, 0))(l.t)
		pt := check.Must(l.v.Attach(pieces, 0))(l.t)
		in.send(nil)
		n := uint64(in.f.Len())
		from.want(t, "in", [4]uint64{1, n, 0, 0})
		wt.want(t, "whole", [4]uint64{0, 0, 1, n})
		pt.want(t, "in pieces", [4]uint64{0, 0, 1, n})
		check.True(t, len(pieces.got) == len(segments), "%d pieces", len(pieces.got))
		l.wantAccounts()
	})
}

// An attachment that goes leaves its counts to the VSI. The next one begins at zero.
func TestTalliesAfterDetach(t *testing.T) {
	inLab(t, func(l *lab) {
		two := check.Must(l.s.VSI(2, nil))(l.t)
		a, at := l.port("a", 0)
		b, bt := l.port("b", 0)
		b2 := check.Must(two.Attach(b, 5))(l.t)
		send := func() { a.send(eth(frame.Broadcast, mac(1), 0x88b5, make([]byte, 46)...)) }
		send()
		was := l.v.Stats()
		for i := range 5 {
			check.OK(t, bt.Detach())
			bt.want(t, "detached", [4]uint64{0, 0, 1, 60})
			if now := l.v.Stats(); now.Rx != was.Rx || now.Tx != was.Tx || len(now.Attachments) != 1 {
				t.Errorf("%d: %+v", i, now)
			}
			bt = check.Must(l.v.Attach(b, 0))(l.t)
			bt.want(t, "attached", [4]uint64{})
			send()
			bt.want(t, "attached", [4]uint64{0, 0, 1, 60})
			now := l.v.Stats()
			check.True(t, now.Tx.Frames == was.Tx.Frames+1 && now.Rx.Frames == was.Rx.Frames+1, "%+v after %+v", now, was)
			was = now
		}
		check.OK(t, at.Detach()) // and its worker ends
		bt.want(t, "its worker gone", [4]uint64{0, 0, 1, 60})
		check.True(t, b2.Stats().Tx.Frames == 0, "%+v", b2.Stats())
		if now := l.v.Stats(); now.Rx != was.Rx || now.Tx != was.Tx {
			t.Errorf("%+v", now)
		}
		l.s.Close()
		if now := l.s.Stats().VSIs[0]; now.Rx != was.Rx || now.Tx != was.Tx || len(now.Attachments) != 1 || now.Attachments[0].Tx.Frames != 1 {
			t.Errorf("closed: %+v", now)
		}
	})
}

// Several workers send to attachments that come and go, while others read. Nothing is lost, and no sum goes back.
func TestTalliesUnderTraffic(t *testing.T) {
	s := check.Must(New(nil))(t)
	v := check.Must(s.VSI(1, nil))(t)
	other := check.Must(s.VSI(2, nil))(t)
	check.Run(t, s.Run)
	storm := &AttachConfig{Storm: Storm{Broadcast: Rate{Packets: Unlimited}}}
	const senders, batches, each = 3, 2000, 4
	var ins []*stub
	var froms []*Attachment
	for i := range senders {
		p := newStub(fmt.Sprint("in", i))
		ins, froms = append(ins, p), append(froms, check.Must(v.AttachWith(p, 0, storm))(t))
	}
	out, keep := newSink("out"), newSink("keep")
	stays := check.Must(other.Attach(out, 7))(t)
	kept := check.Must(v.Attach(keep, 0))(t)

	var wg, reading sync.WaitGroup
	stop := make(chan struct{})
	for i, p := range ins {
		f := eth(frame.Broadcast, mac(byte(i)), 0x88b5, make([]byte, 46)...)
		wg.Go(func() {
			for range batches {
				p.in <- [][]byte{f, f, f, f}
			}
		})
	}
	reading.Go(func() {
		var last VSIStats
		for {
			now := v.Stats()
			if now.Rx.Frames < last.Rx.Frames || now.Tx.Frames < last.Tx.Frames || now.Rx.Bytes < last.Rx.Bytes || now.Tx.Bytes < last.Tx.Bytes {
				t.Errorf("%+v %+v after %+v %+v", now.Rx, now.Tx, last.Rx, last.Tx)
			}
			last = now
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	var passed uint64
	reading.Go(func() {
		for {
			a, err := v.Attach(out, 0)
			if err == nil {
				err = a.Detach()
			}
			if err != nil {
				t.Error(err)
				return
			}
			passed += a.Stats().Tx.Frames
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	wg.Wait()
	close(stop)
	reading.Wait()
	const in = senders * batches * each
	for end := time.Now().Add(20 * time.Second); v.Stats().Rx.Frames < in; time.Sleep(time.Millisecond) {
		check.Need(t, !time.Now().After(end), "%+v", v.Stats())
	}
	s.Settle()
	st := v.Stats()
	if want := in*senders + passed; st.Rx != (frame.Count{Frames: in, Bytes: in * 60}) || st.Tx != (frame.Count{Frames: want, Bytes: want * 60}) { // to the other senders, and to keep
		t.Errorf("%+v %+v, want %d and %d", st.Rx, st.Tx, in, want)
	}
	kept.want(t, "keep", [4]uint64{0, 0, in, in * 60})
	for i, a := range froms {
		a.want(t, "sender "+fmt.Sprint(i), [4]uint64{in / senders, in / senders * 60, in / senders * (senders - 1), in / senders * (senders - 1) * 60})
	}
	stays.want(t, "another segment", [4]uint64{})
	for _, p := range s.Stats().Ports {
		if p.Name == "out" && p.Tx.Frames != passed {
			t.Errorf("out got %d, its attachments say %d", p.Tx.Frames, passed)
		}
	}
}

// A worker adds up for a few attachments at a time, and nothing is allocated or lost with many.
func TestTallyMemory(t *testing.T) {
	if n := unsafe.Sizeof(tally{}); n != 64 {
		t.Errorf("%d bytes for an attachment", n)
	}
	w, list := new(worker), make([]tally, 1000)
	if a := testing.AllocsPerRun(2, func() {
		for i := range 3 * len(list) {
			w.count(&list[i%len(list)]).rx.Frames++
			w.count(&list[i%7]).tx.Frames++
		}
		w.tell()
	}); a != 0 {
		t.Errorf("%v allocations", a)
	}
	var sum traffic
	for i := range list {
		sum.add(list[i].value())
	}
	if want := uint64(3 * 3 * len(list)); sum.rx.Frames != want || sum.tx.Frames != want { // AllocsPerRun runs once more
		t.Errorf("%+v, want %d", sum, want)
	}
}
