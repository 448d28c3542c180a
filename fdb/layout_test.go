package fdb

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Two other layouts, with as much of a table as it takes to compare them: the same
// hash, the same generations, moves under a lock that is only tried. The figures
// are in bench/results/fdb.txt.

// wide is flat like Table, with meta in the slot.
type wide struct {
	arr   atomic.Pointer[wideArray]
	table *Table // for generations and seeds
	mu    sync.Mutex
}

type wideArray struct {
	slots []wideSlot
	hash  *array
}

type wideSlot struct{ key, val, meta atomic.Uint64 }

func newWide(t *Table) *wide {
	from := t.arr.Load()
	w := &wide{table: t}
	a := &wideArray{make([]wideSlot, len(from.slots)), from}
	for i := range from.slots {
		a.slots[i].key.Store(from.slots[i].key.Load())
		a.slots[i].val.Store(from.slots[i].val.Load())
	}
	w.arr.Store(a)
	return w
}

func (t *wide) find(a *wideArray, u uint64) (s *wideSlot, v uint64, ok bool) {
	mask := uint64(len(a.slots) - 1)
	for i := a.hash.home(u) & mask; ; i = (i + 1) & mask {
		s := &a.slots[i]
		k := s.key.Load()
		if k>>16 == 0 {
			return s, 0, false
		}
		if k>>16 == u {
			v := s.val.Load()
			return s, v, (v^k)&stampMask == 0 && t.table.live(v)
		}
	}
}

func (t *wide) Lookup(mac frame.MAC) (frame.Dest, bool) {
	u := mac.Uint64()
	a := t.arr.Load()
	mask := uint64(len(a.slots) - 1)
	for i := a.hash.home(u) & mask; ; i = (i + 1) & mask {
		s := &a.slots[i]
		k := s.key.Load()
		if k>>16 == 0 {
			return 0, false
		}
		if k>>16 == u {
			v := s.val.Load()
			if (v^k)&stampMask != 0 || !t.table.live(v) {
				return 0, false
			}
			return destOf(v), true
		}
	}
}

func (t *wide) Learn(mac frame.MAC, d frame.Dest, now frame.Tick) Outcome {
	s, v, ok := t.find(t.arr.Load(), mac.Uint64())
	if ok && destOf(v) == d {
		if m := s.meta.Load(); ageOf(seenOf(m), now) > 0 {
			s.meta.CompareAndSwap(m, newMeta(now, 0, 0, 0))
		}
		return Known
	}
	if !t.mu.TryLock() {
		return Busy
	}
	s.meta.Store(newMeta(now, 0, 0, 0))
	s.val.Store(newVal(d, t.table.gen(d, learned), learned) | v&stampMask)
	t.mu.Unlock()
	return Moved
}

// buckets holds pointers to entries that never change but for the time they were
// seen. A bucket is one cache line: seven pointers, and eight bits of each hash, so
// that few pointers are followed in vain.
type buckets struct {
	arr   atomic.Pointer[bucketArray]
	table *Table
	mu    sync.Mutex
}

type bucketArray struct {
	buckets []bucket
	hash    *array
}

type bucket struct {
	tags    atomic.Uint64
	entries [7]atomic.Pointer[bucketEntry]
}

type bucketEntry struct {
	mac, val uint64
	seen     atomic.Uint32
}

func newBuckets(t *Table) *buckets {
	from := t.arr.Load()
	b := &buckets{table: t}
	a := &bucketArray{make([]bucket, len(from.slots)/8), from}
	for i := range from.slots {
		k, v := from.slots[i].key.Load(), from.slots[i].val.Load()
		if v == 0 {
			continue
		}
		h := from.home(k >> 16)
		for j := h; ; j++ {
			to := &a.buckets[j%uint64(len(a.buckets))]
			n := 0
			for n < 7 && to.entries[n].Load() != nil {
				n++
			}
			if n < 7 {
				to.entries[n].Store(&bucketEntry{mac: k >> 16, val: v})
				to.tags.Store(to.tags.Load() | (h>>56|1)<<(n*8))
				break
			}
		}
	}
	b.arr.Store(a)
	return b
}

func (t *buckets) find(u uint64) (*atomic.Pointer[bucketEntry], *bucketEntry) {
	const ones, tops = 0x0001010101010101, 0x0080808080808080
	a := t.arr.Load()
	h := a.hash.home(u)
	tag := (h>>56 | 1) * ones
	for i := h; ; i++ {
		b := &a.buckets[i&uint64(len(a.buckets)-1)]
		tags := b.tags.Load()
		x := tags ^ tag
		for hit := (x - ones) & ^x & tops; hit != 0; hit &= hit - 1 {
			p := &b.entries[bits.TrailingZeros64(hit)/8]
			if e := p.Load(); e != nil && e.mac == u {
				return p, e
			}
		}
		if tags>>48 == 0 {
			return nil, nil
		}
	}
}

func (t *buckets) Lookup(mac frame.MAC) (frame.Dest, bool) {
	_, e := t.find(mac.Uint64())
	if e == nil || !t.table.live(e.val) {
		return 0, false
	}
	return destOf(e.val), true
}

func (t *buckets) Learn(mac frame.MAC, d frame.Dest, now frame.Tick) Outcome {
	p, e := t.find(mac.Uint64())
	if e != nil && t.table.live(e.val) && destOf(e.val) == d {
		if s := e.seen.Load(); ageOf(frame.Tick(s), now) > 0 {
			e.seen.CompareAndSwap(s, uint32(now))
		}
		return Known
	}
	if !t.mu.TryLock() {
		return Busy
	}
	n := &bucketEntry{mac: e.mac, val: newVal(d, t.table.gen(d, learned), learned)}
	n.seen.Store(uint32(now))
	p.Store(n)
	t.mu.Unlock()
	return Moved
}

type layout interface {
	Lookup(frame.MAC) (frame.Dest, bool)
	Learn(frame.MAC, frame.Dest, frame.Tick) Outcome
}

// layouts returns the table and the same entries in the other two.
func layouts(w *bench) map[string]layout {
	t := w.table(Config{})
	return map[string]layout{"flat": t, "wide": newWide(t), "buckets": newBuckets(t)}
}

func TestLayouts(t *testing.T) {
	w := newBench(10000)
	for name, l := range layouts(w) {
		for i, mac := range w.macs {
			if d, ok := l.Lookup(mac); !ok || d != destAt(i) {
				t.Fatal(name, i, d, ok)
			}
			if o := l.Learn(mac, destAt(i), 0); o != Known {
				t.Fatal(name, o)
			}
			if o := l.Learn(mac, destAt(i+1), 0); o != Moved {
				t.Fatal(name, o)
			}
			if d, ok := l.Lookup(mac); !ok || d != destAt(i+1) {
				t.Fatal(name, i, d, ok)
			}
		}
		if _, ok := l.Lookup(macAt(5)); ok {
			t.Error(name, "finds what is not there")
		}
	}
}

// BenchmarkLayout: readers on every core, alone, with one operation in a hundred a
// move, and with nothing but learning of what is known.
func BenchmarkLayout(b *testing.B) {
	for _, n := range sizes {
		w := newBench(n)
		all := layouts(w)
		for _, name := range []string{"flat", "wide", "buckets"} {
			l := all[name]
			b.Run(fmt.Sprintf("lookup/%s/%d", name, n), func(b *testing.B) {
				w.each(b, func(_ uint32, q *asked) { l.Lookup(q.mac) })
			})
			b.Run(fmt.Sprintf("known/%s/%d", name, n), func(b *testing.B) {
				w.each(b, func(_ uint32, q *asked) { l.Learn(q.mac, q.d, 0) })
			})
		}
		for _, name := range []string{"flat", "wide", "buckets"} { // last: the MACs move
			l := all[name]
			b.Run(fmt.Sprintf("mixed/%s/%d", name, n), func(b *testing.B) {
				w.each(b, func(n uint32, q *asked) {
					if n%100 == 0 {
						l.Learn(q.mac, destAt(int(n/100)), 0)
					} else {
						l.Lookup(q.mac)
					}
				})
			})
		}
	}
}
