package offload

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/vtep"
)

// TestCloseCarriesNothingOld: while Close waits for the goroutine, changes still void flows, and a second Close waits, too.
func TestCloseCarriesNothingOld(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	table := r.vsi.FDB()
	p := r.hosts(r.dests[0], r.dests[1])
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
		again := make(chan error)
		go func() { again <- r.o.Close() }()
		select {
		case <-again:
			t.Error("a second Close does not wait for the first")
		case <-time.After(50 * time.Millisecond):
			defer func() { check.OK(t, <-again) }()
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

// TestCloseMeanwhile: all methods may be called while Close runs, and after it.
func TestCloseMeanwhile(t *testing.T) {
	h := rigHost(t)
	for range 10 {
		r := newRig(t, h)
		table := r.vsi.FDB()
		p := r.hosts(r.dests[0], r.dests[3])
		r.o.ended.Go(r.o.run)
		stop := make(chan struct{})
		var all sync.WaitGroup
		for _, f := range []func(){
			func() { r.o.Hint(p) },
			func() { r.sw.Settle() },
			func() { table.Delete(macB); _ = table.Set(macB, r.dests[3], fdb.Static) },
			func() { _ = r.v.SetPeers([]vtep.PeerConfig{{Address: addr(2), Port: uint16(4789 + rand.IntN(2))}}) },
			func() {
				for e := range r.o.Flows() {
					_ = e.Valid
				}
				st := check.Must(r.o.Stats())(t)
				for range st.Refused {
				}
			},
		} {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						f()
					}
				}
			})
		}
		time.Sleep(30 * time.Millisecond)
		check.OK(t, r.o.Close())
		check.OK(t, r.o.Close())
		time.Sleep(5 * time.Millisecond)
		close(stop)
		all.Wait()
		check.OK(t, r.sw.Close())
	}
}
