package offload

import (
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Hosts that come and go void no flow of others, though each epoch is shared by many MACs: only while a decision is being made does a
// change of any MAC count. A change of a flow's own hosts does.
func TestOtherMACs(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	r.hosts(r.dests[0], r.dests[1])
	p := r.pair(r.dests[0], macA, macB)
	h.Do(func() {
		r.o.offer(p)
		check.True(t, r.carried(p), "not carried")
		// MACs of the same epoch, most of them with another entriesOf.
		var same []frame.MAC
		for i := uint64(0x060000000000); len(same) < 8; i++ {
			if m := frame.MACFrom(i); r.o.epoch(m) == r.o.epoch(macA) && r.o.entriesOf(m) != r.o.entriesOf(macA) && r.o.entriesOf(m) != r.o.entriesOf(macB) {
				same = append(same, m)
			}
		}
		table := r.vsi.FDB()
		for _, m := range same {
			check.OK(t, table.Set(m, r.dests[0], fdb.Static))
			check.OK(t, table.Set(m, r.dests[1], fdb.Static))
			check.True(t, table.Delete(m), "no entry")
		}
		check.True(t, r.carried(p), "a host that comes and goes voids a flow of others")
		r.o.deciding.Add(1)
		check.OK(t, table.Set(same[0], r.dests[0], fdb.Static))
		check.True(t, !r.carried(p), "a change during a decision is forgotten")
		r.o.deciding.Add(-1)
		r.o.renew()
		check.True(t, r.carried(p), "not carried again")
		check.OK(t, table.Set(macB, r.dests[2], fdb.Static))
		check.True(t, !r.carried(p), "carried to where the host was")

		r.o.renew()
		r.o.mu.Lock()
		for _, e := range r.o.entries {
			r.o.remove(e)
		}
		r.o.mu.Unlock()
		for i := range r.o.macs {
			if n := r.o.macs[i].Load(); n != 0 {
				t.Errorf("%d entries are still counted", n)
			}
		}
		check.OK(t, r.o.Close())
	})
}
