package policy

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
)

var forever = func() (l limits) {
	for i := range l {
		l[i] = 100
	}
	return l
}()

// put tracks a flow of port 1.
func (t *flows) put(w *key, st state, now frame.Tick) event {
	return t.insert(w, &newFlow{st, now, 0, frame.NewDest(1, 0)}, &forever)
}

func keyOf(n int) key { return key{1, uint64(n), 2, 3, 17 << 24} }

// A table holds what it was made for and no more, and grows as it fills.
func TestBound(t *testing.T) {
	for _, limit := range []int{1, 7, 1000, 65536} {
		var f flows
		f.init(limit)
		for i := range limit {
			w := keyOf(i)
			if e := f.put(&w, stIngress|stAnswered|stAssured, 1); e != evOpened {
				t.Fatalf("%d of %d: %v", i, limit, e)
			}
			if i == limit/2 {
				f.sweep(1, &forever)
				if n := len(*f.arrays.Load()); n != 1 {
					t.Errorf("%d arrays", n)
				}
			}
		}
		for i := range 1000 {
			w := keyOf(limit + i)
			if e := f.put(&w, stIngress, 50); e != evFull {
				t.Fatalf("%d: one too many: %v", limit, e)
			}
		}
		f.sweep(1, &forever)
		for i := range limit {
			w := keyOf(i)
			if _, ok := f.find(&w, 1, &forever); !ok {
				t.Fatalf("%d: %d is gone", limit, i)
			}
		}
		if f.len() != limit {
			t.Errorf("%d of %d", f.len(), limit)
		}
		for range 40 {
			f.sweep(101, &forever)
		}
		all, own := f.shares.of(frame.NewDest(1, 0))
		if f.len() != 0 || f.aged.Load() != uint64(limit) || all.Load() != 0 || own.Load() != 0 {
			t.Errorf("%d left of %d, %d of the port, %d aged", f.len(), limit, all.Load(), f.aged.Load())
		}
	}
}

// What has expired, or waits long for an answer, makes room; what is answered stays.
func TestRoom(t *testing.T) {
	var f flows
	f.init(100)
	fill := func(from, n int, st state, now frame.Tick) (opened, evicted, full int) {
		for i := range n {
			w := keyOf(from + i)
			switch f.put(&w, st, now) {
			case evOpened:
				opened++
			case evEvicted:
				evicted++
			default:
				full++
			}
		}
		return opened, evicted, full
	}
	if n, _, _ := fill(0, 50, stAnswered|stAssured, 1); n != 50 {
		t.Error(n)
	}
	if n, _, _ := fill(100, 50, 0, 1); n != 50 {
		t.Error(n)
	}
	if _, _, n := fill(1000, 1000, 0, 1+minIdle-1); n != 1000 {
		t.Error(n)
	}
	_, n, _ := fill(2000, 1000, stAnswered|stAssured, 1+minIdle)
	if n < 40 || n > 50 {
		t.Error(n, "evicted")
	}
	for i := range 50 {
		w := keyOf(i)
		if _, ok := f.find(&w, 2, &forever); !ok {
			t.Error(i, "is gone")
		}
	}
	if n, e, _ := fill(3000, 1000, 0, 101); n < 40 || e != 0 || f.len() != 100 {
		t.Error(n, e, f.len())
	}
}

// A port with most flows gives way to one with fewer, whatever they are, and takes from its own
// alone; then the same of peers behind one port. The secret is fixed: a new flow replaces one in its own
// few buckets, and with one secret in some hundreds a bucket has none of the right port.
func TestRoomByShares(t *testing.T) {
	const assured = stAnswered | stAssured
	var f flows
	f.init(1000)
	f.seed = mix.Key{0x9e3779b97f4a7c15, 0xd1b54a32d192ed03, 0xd6e8feb86659fd93}
	n := 0
	open := func(port, peer uint16, st state, times int) (opened int) {
		for range times {
			n++
			w := keyOf(n)
			if f.insert(&w, &newFlow{st, 1, 0, frame.NewDest(port, peer)}, &forever) != evFull {
				opened++
			}
		}
		return opened
	}
	of := func(port, peer uint16) int32 {
		all, own := f.shares.of(frame.NewDest(port, peer))
		if peer == 0 {
			return all.Load()
		}
		return own.Load()
	}
	open(1, 0, assured, 2000)
	if got := open(2, 0, 0, 100); got != 100 || of(1, 0) != 900 || of(2, 0) != 100 {
		t.Errorf("%d of 100, now %d and %d", got, of(1, 0), of(2, 0))
	}
	if got := open(1, 0, assured, 100); got != 0 || of(2, 0) != 100 {
		t.Errorf("who has most got %d more, %d are left to another", got, of(2, 0))
	}
	open(3, 1, assured, 5000)
	if of(2, 0) != 100 || of(3, 0) < 370 || of(3, 0) > 400 {
		t.Errorf("%d, %d and %d", of(1, 0), of(2, 0), of(3, 0))
	}
	if got := open(3, 2, 0, 100); got != 100 || of(3, 2) != 100 || of(2, 0) != 100 {
		t.Errorf("another peer %d of 100, %d are left to another port", got, of(2, 0))
	}
	for peer := range uint16(500) { // as many peers as there is room for, none of them with much
		open(3, 10+peer, assured, 10)
	}
	if got := open(4, 0, 0, 100); got != 100 || of(2, 0) != 100 {
		t.Errorf("%d of 100 beside %d of many peers, %d are left to another", got, of(3, 0), of(2, 0))
	}
	if f.len() != 1000 {
		t.Errorf("%d flows", f.len())
	}
}

// 128 bytes a flow of the largest table, and next to nothing for a policy without flows.
func TestMemory(t *testing.T) {
	live := func() int64 { // signed: what earlier tests left may go between two looks
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools are emptied by the second
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const limit = 65536
	before := live()
	p, err := New(&Config{MaxFlows: limit, Rules: []Rule{{}}})
	must(t, err)
	if n := live() - before; n > 16<<10 {
		t.Errorf("%d bytes without a flow", n)
	}
	for i := range 2 * limit {
		w := keyOf(i)
		p.flows.put(&w, 0, 1)
	}
	p.Housekeep(1)
	if n := live() - before; n > 128*limit {
		t.Errorf("%d bytes, %d a flow", n, n/limit)
	}
	runtime.KeepAlive(p)
}

// Slots change hands all the time while others look: what is found under a key is that
// key's, and what stays is always found, also while the table grows.
func TestTableConcurrent(t *testing.T) {
	concurrent(t, 20_000, 500)
	concurrent(t, 20, 2) // hardly a slot keeps its flow
}

func concurrent(t *testing.T, limit, stay int) {
	rounds := 200_000
	if testing.Short() {
		rounds = 20_000
	}
	var f flows
	f.init(limit)
	// The rule of a state is its key's.
	stateOf := func(n int) state { return newState(1, n&ruleMask, stAnswered|stAssured) }
	for i := range stay {
		w := keyOf(i)
		f.put(&w, stateOf(i), 1)
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	run := func(g func(r *rand.Rand)) {
		r := rand.New(rand.NewPCG(rand.Uint64(), 1))
		wg.Go(func() {
			for !stop.Load() {
				g(r)
			}
		})
	}
	for range 2 {
		run(func(r *rand.Rand) {
			n := stay + r.IntN(2*limit)
			w := keyOf(n)
			if x, ok := f.find(&w, 1, &forever); ok {
				if x.state.rule() != n&ruleMask {
					t.Errorf("%d: that of %d", n, x.state.rule())
				}
				if r.IntN(2) == 0 {
					f.remove(&x)
				} else {
					x.change(x.state | stClosing)
				}
				return
			}
			f.put(&w, stateOf(n), 1)
		})
	}
	run(func(r *rand.Rand) {
		n := r.IntN(stay)
		w := keyOf(n)
		if x, ok := f.find(&w, 1, &forever); !ok || x.state.rule() != n {
			t.Errorf("%d: %v, %v", n, ok, x.state.rule())
		} else if x.state&stClosing != 0 {
			t.Errorf("%d: the state of another was changed", n)
		}
	})
	run(func(*rand.Rand) { f.sweep(1, &forever); runtime.Gosched() })
	for n := 0; n < rounds && !t.Failed(); n++ {
		w := keyOf(1_000_000 + n%limit)
		f.put(&w, stateOf(1_000_000+n%limit), 1)
		if x, ok := f.find(&w, 1, &forever); ok {
			f.remove(&x)
		}
	}
	stop.Store(true)
	wg.Wait()
	f.sweep(1, &forever)
	n := 0
	a := (*f.arrays.Load())[0]
	for i := range uint64(a.size()) {
		if w, x, ok := a.read(i); ok {
			if n++; x.state.rule() != int(w[1])&ruleMask {
				t.Errorf("%d: that of %d", w[1], x.state.rule())
			}
		}
	}
	all, own := f.shares.of(frame.NewDest(1, 0))
	if n != f.len() || n > limit || int(all.Load()) != n || int(own.Load()) != n {
		t.Errorf("%d flows, %d counted, %d of the port, %d allowed", n, f.len(), all.Load(), limit)
	}
}

// Who has looked a flow up and comes late does nothing to the one in its slot now.
func TestLate(t *testing.T) {
	a := newArray(bucket)
	put := func(w key) found {
		h := w.hash(new(mix.Key))
		i, mark, ok := a.free(a.homes(h))
		if !ok || i != 0 {
			t.Fatal(i, ok)
		}
		if _, ok := a.claim(i, mark, &w, h, &newFlow{stIngress, 1, 0, 0}); !ok {
			t.Fatal("another's")
		}
		x, ok := a.find(&w, h)
		if !ok {
			t.Fatal("not there")
		}
		return x
	}
	old := put(keyOf(1))
	late := old
	if !old.remove() || old.remove() {
		t.Error("removed twice")
	}
	x := put(keyOf(2))
	late.change(late.state | stClosing)
	if late.remove() {
		t.Error("removed another's")
	}
	if _, y, ok := a.read(0); !ok || y.state != x.state {
		t.Error("changed another's")
	}
	x.change(newState(7, 5, stEgress)) // a state that is made anew gets the slot's stamp
	if _, y, _ := a.read(0); y.state != x.state || y.state.rule() != 5 || y.state == newState(7, 5, stEgress) {
		t.Errorf("%x", y.state)
	}
}
