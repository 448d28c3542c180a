package offload

import (
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// TestCloseCarriesNothingOld: while Close waits for the goroutine, changes still void flows.
func TestCloseCarriesNothingOld(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	table := r.vsi.FDB()
	check.OK(t, table.Set(macA, r.dests[0], fdb.Static))
	check.OK(t, table.Set(macB, r.dests[1], fdb.Static))
	p := vswitch.Pair{From: r.dests[0], Src: macA, Dst: macB}
	h.Do(func() {
		r.o.offer(p)
		if !r.carried(p) {
			t.Fatal("not carried")
		}
		busy, ended := make(chan struct{}), make(chan error)
		r.o.ended.Go(func() { <-busy })
		go func() { ended <- r.o.Close() }()
		time.Sleep(50 * time.Millisecond)
		table.Delete(macB)
		r.sw.Settle()
		if r.carried(p) {
			t.Error("carried after the entry was deleted")
		}
		close(busy)
		check.OK(t, <-ended)
	})
}

// TestSecond: a switch has one Offload at a time: the first would not be told of changes any more.
func TestSecond(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	h.Do(func() {
		if o, err := New(r.sw, nil); err == nil {
			t.Error("a second Offload")
			o.Close()
		}
		check.OK(t, r.o.Close())
		o := check.Must(New(r.sw, nil))(t)
		check.OK(t, o.Close())
	})
}
