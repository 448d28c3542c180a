package capture

import (
	"bytes"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

const tenMinutes = 600

// stuckWriter takes nothing until it is open.
type stuckWriter struct {
	open  chan struct{}
	wrote atomic.Int64
}

func (w *stuckWriter) Write(b []byte) (int, error) {
	<-w.open
	w.wrote.Add(int64(len(b)))
	return len(b), nil
}

// A port is captured by somebody who takes nothing: its frames go on, and another's file, of the same capture or of another,
// has all.
func TestWorstCapture(t *testing.T) {
	run := func(attack bool) (got int) {
		synctest.Test(t, func(t *testing.T) {
			busy, good := newCapture(t, &Config{Buffer: 1 << 17}), newCapture(t, &Config{Buffer: 1 << 17})
			bad, mine := fake.New("bad"), fake.New("mine")
			stuck, file, beside := &stuckWriter{open: make(chan struct{})}, new(bytes.Buffer), new(bytes.Buffer)
			check.OK(t, busy.Start(stuck))
			check.OK(t, good.Start(file))
			ours := open(t, busy, beside, &Selection{Match: func(_ frame.Kind, b []byte) bool { return len(b) == 60 }})
			bw, mw := portOf(t, busy, bad).Writer(0), portOf(t, good, mine).Writer(0)
			for range tenMinutes {
				for range 4 {
					if attack {
						bw.Write(fake.Outs(fake.Ethernet(1500, 0), fake.Ethernet(1500, 1)))
					}
				}
				bw.Write(fake.Outs(fake.Ethernet(60, 0)))
				mw.Write(fake.Outs(fake.Ethernet(60, 0)))
				synctest.Wait()
				got += bad.Forget()
				if attack {
					got -= 8
				}
			}
			if n := busy.Stats().Dropped; attack && n < 4000 {
				t.Errorf("%d are not captured: no attack", n)
			}
			ours.Stop()
			close(stuck.open)
			busy.Stop()
			good.Stop()
			got += len(entries(t, file.Bytes())) + len(entries(t, beside.Bytes()))
		})
		return got
	}
	worst.Kept(t, "captured packets", run(false), run(true))
}
