package offload

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// TestGroups: what goes to a group of peers stays with user space, which chooses one for each flow; what comes from each of them is
// carried.
func TestGroups(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h) // peers 0 and 1 are the group
	to := r.hosts(r.dests[0], r.group)
	h.Do(func() {
		r.o.offer(to)
		check.True(t, r.o.entries[to] == nil, "a flow to the group")
		for i, from := range r.dests[3:] {
			p := r.pair(from, macB, macA)
			r.o.offer(p)
			carried := r.o.entries[p] != nil && r.carried(p)
			check.True(t, carried == (i < 2), "from peer %d: carried %v", i, carried)
		}
		if st := check.Must(r.o.Stats())(t); st.Refused["no-peer"] == 0 || st.Refused["unknown-mac"] != 1 {
			t.Errorf("%+v", st)
		}
		check.OK(t, r.o.Close())
	})
}
