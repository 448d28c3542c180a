package policy

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// flows is a bounded table of flows. It begins empty, and adds an array eight times as large when
// one is full; Housekeep then copies the flows of the old array. Until then look-ups read both.
type flows struct {
	max    int
	seed   mix.Key
	live   atomic.Int64
	shares shares
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
	tries      = 64         // of insert, while other workers take the slots it finds
)

func (t *flows) init(limit int) {
	t.max = limit
	t.seed = mix.New()
	t.arrays.Store(new([]*array))
}

// slots returns the size of the largest array: with four sevenths of it used, both buckets of a
// flow are practically never full.
func (t *flows) slots() int { return max(t.max+t.max/4*3, 8*bucket) }

// len returns the number of flows, including expired ones that sweep has not met yet.
func (t *flows) len() int { return int(t.live.Load()) }

// find looks up a flow that has not expired.
func (t *flows) find(w *key, now frame.Tick, l *limits) (x found, ok bool) {
	arrays := *t.arrays.Load()
	if len(arrays) == 0 {
		return x, false
	}
	h := w.hash(&t.seed)
	for _, a := range arrays {
		if x, ok = a.find(w, h); ok {
			if x.age(now) < l[timeoutOf(protocolOf(w[4]), x.state)] {
				return x, true
			}
			t.expire(&x)
		}
	}
	return x, false
}

// remove ends a flow, unless its slot has another one.
func (t *flows) remove(x *found) bool {
	if !x.remove() {
		return false
	}
	if x.mark&statusMask != statusBoth {
		t.live.Add(-1)
		t.shares.add(ownerOf(x.mark), -1)
	}
	return true
}

// expire removes a flow that has been idle for its timeout.
func (t *flows) expire(x *found) {
	if t.remove(x) {
		t.aged.Add(1)
	}
}

// insert tracks a flow. It returns evOpened, evEvicted if it evicted another one, or evFull.
func (t *flows) insert(w *key, n *newFlow, l *limits) event {
	h := w.hash(&t.seed)
	result := evOpened
	for range tries {
		arrays := *t.arrays.Load()
		if len(arrays) == 0 {
			t.grow(nil)
			continue
		}
		a := arrays[0]
		if a.size() < t.slots() && t.len() > a.size()/3*2 {
			t.grow(a)
			continue
		}
		i, mark, free := a.free(a.homes(h))
		if free && int(t.live.Add(1)) <= t.max {
			x, ok := a.claim(i, mark, w, h, n)
			if !ok {
				t.live.Add(-1)
				continue
			}
			t.shares.add(n.owner, 1)
			if (*t.arrays.Load())[0] == a || !t.remove(&x) { // or move has copied it
				return result
			}
			continue
		}
		if free {
			t.live.Add(-1)
		} else if a.size() < t.slots() {
			t.grow(a)
			continue
		}
		old, e := t.room(arrays, h, n, l, free)
		switch {
		case e == evFull:
			return evFull
		case !t.remove(&old):
		case e == evOpened:
			t.aged.Add(1)
		default:
			result = e
		}
	}
	return evFull
}

// grow puts a larger array in front of a, unless another worker did.
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

// sweep copies the flows of old arrays, and removes expired flows in a sixteenth of the newest.
// One goroutine at a time sweeps.
func (t *flows) sweep(now frame.Tick, l *limits) {
	arrays := *t.arrays.Load()
	if len(arrays) == 0 {
		return
	}
	a := arrays[0]
	var empty []*array
	for _, old := range arrays[1:] {
		if t.move(old, a, now, l) {
			empty = append(empty, old)
		}
	}
	if len(empty) != 0 {
		t.mu.Lock()
		kept := slices.DeleteFunc(slices.Clone(*t.arrays.Load()), func(x *array) bool { return slices.Contains(empty, x) })
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
		if ok && x.age(now) >= l[timeoutOf(protocolOf(w[4]), x.state)] {
			t.expire(&x)
		}
	}
}

// move copies the flows of an array to another, and reports whether all found room. The originals
// stay for look-ups, uncounted. It does not go by buckets, which would fill those of the other
// array unevenly.
func (t *flows) move(from, to *array, now frame.Tick, l *limits) (all bool) {
	all = true
	for n := range uint64(from.size()) {
		if n%sweepSlice == sweepSlice-1 {
			runtime.Gosched()
		}
		w, x, ok := from.read(n * stride % uint64(from.size()))
		if !ok || x.mark&statusMask == statusBoth {
			continue
		}
		if x.age(now) >= l[timeoutOf(protocolOf(w[4]), x.state)] {
			t.expire(&x)
			continue
		}
		if !x.s.mark.CompareAndSwap(x.mark, x.mark|bothBit) {
			all = false // another worker's now
			continue
		}
		// A packet may have changed them since.
		x.state, x.seen, x.group = state(x.s.state.Load()), frame.Tick(x.s.seen.Load()), uint16(x.s.group.Load())
		if x.s.mark.Load() != x.mark|bothBit {
			all = false // gone meanwhile
			continue
		}
		h := w.hash(&t.seed)
		for {
			at, mark, ok := to.free(to.homes(h))
			if !ok { // one in a million; it stays until there is room
				x.s.mark.CompareAndSwap(x.mark|bothBit, x.mark)
				all = false
				break
			}
			if _, ok = to.claim(at, mark, &w, h, &newFlow{x.state, x.seen, x.group, ownerOf(x.mark)}); ok {
				break
			}
		}
	}
	return all
}
