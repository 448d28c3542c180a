package port

import (
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

const tenMinutes = 600

// A host that takes nothing any more fills what waits for its port: others have their frames.
func TestWorstQueue(t *testing.T) {
	run := func(attack bool) (got int) {
		synctest.Test(t, func(t *testing.T) {
			stuck, good := fake.New("stuck"), fake.New("good")
			stuck.OnWrite = func([]frame.Out) error { <-stuck.Closed; return nil }
			good.OnWrite = func(out []frame.Out) error { good.Forget(); got += len(out); return nil }
			var writers []frame.Writer
			for _, p := range []Port{stuck, good} {
				b := check.Must(NewBuffered(p, &BufferedConfig{Queue: 16}))(t)
				defer b.Port().Close()
				writers = append(writers, b.Port().Writer(0))
			}
			pipe, mine := NewPipe(&PipeConfig{Queue: 16}), NewPipe(&PipeConfig{Queue: 16})
			defer pipe.Close()
			defer mine.Close()
			for range tenMinutes {
				many := make([][]byte, 32)
				for i := range many {
					many[i] = fake.Ethernet(60, 0)
				}
				if attack {
					writers[0].Write(fake.Outs(many...))
					pipe.Writer(0).Write(fake.Outs(many...))
				}
				writers[1].Write(fake.Outs(many[:16]...))
				mine.Writer(0).Write(fake.Outs(many[:16]...))
				synctest.Wait()
				for mine.out.Len() > 0 {
					check.Must(mine.Recv(t.Context()))(t)
					got++
				}
			}
		})
		return got
	}
	worst.Kept(t, "frames queued at a port", run(false), run(true))
}
