package offload

import (
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// TestLongerFrames: where a port takes longer frames than when it was opened, a flow to it carries them, also the first one.
func TestLongerFrames(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	check.OK(t, r.vsi.FDB().Set(macA, r.dests[0], fdb.Static))
	check.OK(t, r.vsi.FDB().Set(macB, r.dests[1], fdb.Static))
	p := r.pair(r.dests[0], macA, macB)
	h.MTU("tap1", 3000)
	h.Do(func() {
		r.o.offer(p)
		check.Need(t, r.o.entries[p] != nil, "no flow")
		check.Equal(t, "longest frame", r.o.entries[p].plan.flow.Max, 3014)
		check.OK(t, r.o.Close())
	})
}
