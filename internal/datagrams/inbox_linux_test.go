package datagrams

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
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
