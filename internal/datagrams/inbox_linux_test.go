package datagrams

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
)

func TestDropsWrap(t *testing.T) {
	var d Drops
	for _, v := range []uint32{0, 5, 5, 1 << 30, 3 << 30, 1<<32 - 1, 1 << 29} {
		d.Seen(v)
	}
	if want := uint64(1<<32 + 1<<29); d.Total != want {
		t.Errorf("%d, want %d", d.Total, want)
	}
}

// An error that stays neither ends a reader nor keeps a processor busy, and Close
// ends the waiting.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		start := time.Now()
		for i := range 8 {
			if err := BackOff(i, done); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("the first errors cost %v", d)
		}
		if err := BackOff(1000, done); err != nil || time.Since(start) != 100*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.AfterFunc(10*time.Millisecond, func() { close(done) })
		if err := BackOff(1000, done); !errors.Is(err, net.ErrClosed) || time.Since(start) != 110*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// A run that finds no room in a batch comes whole in the next: its first datagram with headroom, and
// counted once.
func TestSplitLater(t *testing.T) {
	var in Inbox
	b := frame.NewBatch(new(frame.Arenas))
	b.Reset()
	in.Pool, in.N, in.Want = b.Pool(), 1, MinWant
	for i := range in.Into {
		in.Into[i] = new(unix.Iovec)
	}
	in.Prepare(frame.BlockSize)
	for range frame.MaxBatch - 1 {
		b.New(0)
	}
	if in.Split(b, 50, 54, 2, frame.Outer{}) || in.Begun() || len(b.Frames) != frame.MaxBatch-1 {
		t.Fatalf("%d frames", len(b.Frames))
	}
	b.Reset()
	if !in.Split(b, 50, 54, 2, frame.Outer{}) || len(b.Frames) != 2 || b.Frames[0].Headroom() != frame.Headroom+50 || b.Frames[1].Headroom() != 0 {
		t.Errorf("%d frames", len(b.Frames))
	}
	if r, n := in.Rx.Runs.Load(), in.Rx.Segments.Load(); r != 1 || n != 2 {
		t.Errorf("%d runs of %d", r, n)
	}
}
