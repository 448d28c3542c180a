package offload

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/vtep"
)

// TestVTEPOfTwo: a VTEP that goes from one switch to another tells the Offload there of changes, also when the first one ends, and
// is forgotten by the first.
func TestVTEPOfTwo(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	table := r.vsi.FDB()
	p := r.hosts(r.dests[0], r.dests[3])
	h.Do(func() {
		r.o.offer(p)
		if r.o.tick(); len(r.o.entries) != 2 || len(r.o.vteps) != 1 {
			t.Fatalf("%d flows, %d VTEPs", len(r.o.entries), len(r.o.vteps))
		}
		told := 0
		defer r.v.Watch(func() { told++ })()
		table.Delete(macB)
		r.o.renew()
		if r.o.unwatch(); len(r.o.vteps) != 0 {
			t.Error("a VTEP without flows is kept")
		}
		check.OK(t, r.o.Close())
		check.OK(t, r.v.SetPeers([]vtep.PeerConfig{{Address: addr(2), Port: 4790}}))
		if told == 0 {
			t.Error("another watcher is not told any more")
		}
	})
}
