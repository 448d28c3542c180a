package port

import (
	"bytes"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

const tenMinutes = 600

// A host that takes nothing any more fills what waits for its port: others have their frames.
func TestWorstQueue(t *testing.T) {
	run := func(attack bool) (got int) {
		synctest.Test(t, func(t *testing.T) {
			stuck, good := newFake("stuck"), newFake("good")
			stuck.write = func([]frame.Out) error { <-stuck.closed; return nil }
			good.write = func(out []frame.Out) error { good.got = nil; got += len(out); return nil }
			var writers []frame.Writer
			for _, p := range []Port{stuck, good} {
				b, err := NewBuffered(p, &BufferedConfig{Queue: 16})
				if err != nil {
					t.Fatal(err)
				}
				defer b.Port().Close()
				writers = append(writers, b.Port().Writer(0))
			}
			pipe, mine := NewPipe(&PipeConfig{Queue: 16}), NewPipe(&PipeConfig{Queue: 16})
			defer pipe.Close()
			defer mine.Close()
			for range tenMinutes {
				many := make([][]byte, 32)
				for i := range many {
					many[i] = ethernet(60, 0)
				}
				if attack {
					writers[0].Write(outs(many...))
					pipe.Writer(0).Write(outs(many...))
				}
				writers[1].Write(outs(many[:16]...))
				mine.Writer(0).Write(outs(many[:16]...))
				synctest.Wait()
				for mine.out.Len() > 0 {
					if _, err := mine.Recv(t.Context()); err != nil {
						t.Fatal(err)
					}
					got++
				}
			}
		})
		return got
	}
	worst.Kept(t, "frames that wait at a port", run(false), run(true))
}

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

// A port is captured by somebody who takes nothing: its frames go on, and another's capture
// has all.
func TestWorstCapture(t *testing.T) {
	run := func(attack bool) (got int) {
		synctest.Test(t, func(t *testing.T) {
			busy, good := newCapture(t, &CaptureConfig{Buffer: 1 << 17}), newCapture(t, &CaptureConfig{Buffer: 1 << 17})
			bad, mine := newFake("bad"), newFake("mine")
			stuck, file := &stuckWriter{open: make(chan struct{})}, new(bytes.Buffer)
			if err := busy.Start(stuck); err != nil {
				t.Fatal(err)
			}
			if err := good.Start(file); err != nil {
				t.Fatal(err)
			}
			bw, mw := capturePortOf(t, busy, bad).Writer(0), capturePortOf(t, good, mine).Writer(0)
			for range tenMinutes {
				for range 4 {
					if attack {
						bw.Write(outs(ethernet(1500, 0), ethernet(1500, 1)))
					}
				}
				bw.Write(outs(ethernet(60, 0)))
				mw.Write(outs(ethernet(60, 0)))
				synctest.Wait()
				got += len(bad.got)
				if bad.got = nil; attack {
					got -= 8
				}
			}
			if n := busy.Stats().Dropped; attack && n < 4000 {
				t.Errorf("%d are not captured: no attack", n)
			}
			close(stuck.open)
			busy.Stop()
			good.Stop()
			got += len(entries(t, file.Bytes()))
		})
		return got
	}
	worst.Kept(t, "captured packets", run(false), run(true))
}
