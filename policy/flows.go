package policy

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// flows is a bounded table of flows. It begins with nothing, and makes an array eight times
// as large when one is full; Tend then copies the flows of the old one. Until it has, both
// are looked at.
type flows struct {
	max    int
	seed   [3]uint64
	mu     sync.Mutex
	arrays atomic.Pointer[[]*array] // the newest first
	cursor uint64                   // of sweep
	aged   atomic.Uint64
}

const (
	firstSlots = 1024
	growth     = 8
	sweepSlice = 1024
	stride     = 2654435761 // a prime, and larger than any array
	patience   = 5          // ticks a flow without an answer is safe for in a full table
)

func (t *flows) init(limit int) {
	t.max = limit
	t.seed = [3]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()}
	t.arrays.Store(new([]*array))
}

// slots returns how large the largest array is: with four sevenths of it used, two buckets
// that are both full are not met.
func (t *flows) slots() int { return max(t.max+t.max/4*3, 8*bucket) }

// len returns how many flows there are, those that have expired and were not yet swept
// included.
func (t *flows) len() (n int) {
	for _, a := range *t.arrays.Load() {
		n += int(a.live.Load())
	}
	return n
}

// find looks up a flow that has not expired.
func (t *flows) find(w *key, now frame.Tick, l *limits) (x found, ok bool) {
	arrays := *t.arrays.Load()
	if len(arrays) == 0 {
		return x, false
	}
	h := w.hash(&t.seed)
	for _, a := range arrays {
		if x, ok = a.find(w, h); ok {
			if x.age(now) < l[kindOf(protocolOf(w[4]), x.state)] {
				return x, true
			}
			t.expire(&x)
		}
	}
	return x, false
}

// expire removes a flow that has been silent for its timeout.
func (t *flows) expire(x *found) {
	if x.remove() {
		t.aged.Add(1)
	}
}

// insert tracks a flow. It returns evOpened, and evEvicted when another one had to go, or
// evFull.
func (t *flows) insert(w *key, st state, now frame.Tick, l *limits, group uint16) event {
	h := w.hash(&t.seed)
	for {
		arrays := *t.arrays.Load()
		if len(arrays) == 0 {
			t.grow(nil)
			continue
		}
		a, homes := arrays[0], arrays[0].homes(h)
		if a.size() < t.slots() && int(a.live.Load()) > a.size()/3*2 {
			t.grow(a)
			continue
		}
		i, mark, ok := a.free(homes)
		if ok && t.len() < t.max {
			if a.live.Add(1); a.claim(i, mark, w, h, st, now, group) {
				if (*t.arrays.Load())[0] == a {
					return evOpened
				}
			} else {
				a.live.Add(-1)
			}
			continue
		}
		if !ok && a.size() < t.slots() {
			t.grow(a)
			continue
		}
		old, e := a.weakest(homes, now, l)
		if e == evFull {
			return evFull
		}
		if a.claim(old.i, old.mark, w, h, st, now, group) {
			if e == evOpened {
				t.aged.Add(1)
			}
			return e
		}
	}
}

// weakest returns which flow of two buckets goes first: one that has expired, evOpened; else
// the one that has waited longest for an answer, evEvicted; or evFull.
func (a *array) weakest(homes [2]uint64, now frame.Tick, l *limits) (found, event) {
	var oldest found
	longest := uint32(patience - 1)
	for _, home := range homes {
		for i := home; i < home+bucket; i++ {
			w, x, ok := a.read(i)
			if !ok {
				continue
			}
			age := x.age(now)
			if age >= l[kindOf(protocolOf(w[4]), x.state)] {
				return x, evOpened
			}
			if x.state&stAnswered == 0 && age > longest {
				oldest, longest = x, age
			}
		}
	}
	if oldest.a == nil {
		return oldest, evFull
	}
	return oldest, evEvicted
}

// grow puts a larger array in front of a, unless another worker has.
func (t *flows) grow(a *array) {
	t.mu.Lock()
	defer t.mu.Unlock()
	arrays, size := *t.arrays.Load(), firstSlots
	if len(arrays) != 0 {
		if arrays[0] != a {
			return
		}
		size = a.size() * growth
	}
	arrays = slices.Insert(slices.Clone(arrays), 0, newArray(min(size, t.slots())))
	t.arrays.Store(&arrays)
}

// sweep copies what is in old arrays, and forgets flows that have expired in a sixteenth of
// the newest. One goroutine at a time sweeps.
func (t *flows) sweep(now frame.Tick, l *limits) {
	arrays := *t.arrays.Load()
	if len(arrays) == 0 {
		return
	}
	a := arrays[0]
	for _, old := range arrays[1:] {
		t.move(old, a, now, l)
	}
	if len(arrays) > 1 {
		t.mu.Lock()
		kept := slices.DeleteFunc(slices.Clone(*t.arrays.Load()), func(x *array) bool { return slices.Contains(arrays[1:], x) })
		t.arrays.Store(&kept)
		t.mu.Unlock()
	}
	for n := range max(uint64(a.size()/16), sweepSlice) {
		if n%sweepSlice == sweepSlice-1 {
			runtime.Gosched()
		}
		if t.cursor++; t.cursor >= uint64(a.size()) {
			t.cursor = 0
		}
		w, x, ok := a.read(t.cursor)
		if ok && x.age(now) >= l[kindOf(protocolOf(w[4]), x.state)] {
			t.expire(&x)
		}
	}
}

// move copies the flows of an array to another. Each stays where it was for those who look
// there, but counts no more. They are taken in no order: in that of their buckets they would
// fill the buckets of the other array unevenly.
func (t *flows) move(from, to *array, now frame.Tick, l *limits) {
	for n := range uint64(from.size()) {
		if n%sweepSlice == sweepSlice-1 {
			runtime.Gosched()
		}
		i := n * stride % uint64(from.size())
		w, x, ok := from.read(i)
		if !ok || x.mark&1 != 0 {
			continue
		}
		if x.age(now) >= l[kindOf(protocolOf(w[4]), x.state)] {
			t.expire(&x)
			continue
		}
		h := w.hash(&t.seed)
		for {
			at, mark, ok := to.free(to.homes(h))
			if !ok { // one of a million, which has to be opened anew
				t.expire(&x)
				break
			}
			if to.claim(at, mark, &w, h, x.state, x.seen, x.group) {
				to.live.Add(1)
				break
			}
		}
		if from.mark(i).CompareAndSwap(x.mark, x.mark|1) {
			from.live.Add(-1)
		}
	}
}
