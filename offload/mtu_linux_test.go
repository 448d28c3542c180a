package offload

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// TestLongerFrames: where a port takes longer frames than when it was opened, a flow to it carries them, also the first one.
func TestLongerFrames(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	p := r.hosts(r.dests[0], r.dests[1])
	h.MTU("tap1", 3000)
	h.Do(func() {
		r.o.offer(p)
		check.Need(t, r.o.entries[p] != nil, "no flow")
		check.Equal(t, "longest frame", r.o.entries[p].plan.flow.Max, 3014)
		check.OK(t, r.o.Close())
	})
}
