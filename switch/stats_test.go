package vswitch

import (
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Accepted is what came in and was not dropped, in frames and in bytes.
func TestAcceptedLeavesOutDrops(t *testing.T) {
	s := check.Must(New(nil))(t)
	v := check.Must(s.VSI(1, nil))(t)
	a, b := newStub("a"), newStub("b")
	check.Must(v.Attach(a, 0))(t)
	check.Must(v.Attach(b, 0))(t)
	check.Run(t, s.Run)

	good := eth(frame.Broadcast, mac(1), 0x800, make([]byte, 46)...)
	bad := eth(frame.Broadcast, frame.Broadcast, 0x800, make([]byte, 86)...)
	a.in <- [][]byte{good, bad, {1, 2, 3}, good}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		p := s.Stats().Ports[1]
		if p.Accepted.Frames == 2 {
			if p.Rx != (frame.Count{Frames: 4, Bytes: 223}) || p.Accepted != (frame.Count{Frames: 2, Bytes: 120}) ||
				p.RxDrops[frame.BadSourceMAC] != 1 || p.RxDrops[frame.Short] != 1 {
				t.Errorf("%+v", p)
			}
			return
		}
		check.Need(t, !time.Now().After(end), "%+v", p)
	}
}

// While frames are dropped and accepted, Accepted neither goes back nor exceeds Rx.
func TestAcceptedUnderTraffic(t *testing.T) {
	s := check.Must(New(nil))(t)
	v := check.Must(s.VSI(1, nil))(t)
	a, b := newStub("a"), newStub("b")
	check.Must(v.Attach(a, 0))(t)
	check.Must(v.Attach(b, 0))(t)
	check.Run(t, s.Run)

	batch := [][]byte{eth(frame.Broadcast, mac(1), 0x800, make([]byte, 46)...)}
	for range 30 {
		batch = append(batch, eth(frame.Broadcast, frame.Broadcast, 0x800, make([]byte, 86)...))
	}
	const batches = 3000
	go func() {
		for range batches {
			a.in <- batch
		}
	}()
	var last PortStats
	for end := time.Now().Add(20 * time.Second); last.Accepted.Frames < batches; {
		p := s.Stats().Ports[1]
		if p.Accepted.Frames < last.Accepted.Frames || p.Accepted.Frames > p.Rx.Frames ||
			p.Accepted.Bytes < last.Accepted.Bytes || p.Accepted.Bytes > p.Rx.Bytes {
			t.Fatalf("%+v, after %+v", p.Accepted, last.Accepted)
		}
		if last = p; time.Now().After(end) {
			t.Fatalf("%+v", p)
		}
	}
	if last.Accepted != (frame.Count{Frames: batches, Bytes: batches * 60}) || last.Rx.Frames != batches*31 {
		t.Errorf("%+v", last)
	}
}
