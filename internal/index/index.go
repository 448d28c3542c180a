// Package index is a map with wait-free readers, for the small tables used for each packet: a VTEP's networks and peers, a
// port's tags.
package index

import (
	"iter"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/internal/mix"
)

// A Key is an index of a Map. Hash need not mix its bits well, because the map does. If strangers can choose the keys, it
// must be one of the hashes of secret, which belongs to the map.
type Key interface {
	comparable
	Hash(secret *mix.Key) uint64
}

// A Map holds values by key: open addressing over pointers to immutable entries. Load takes no lock, writes nothing shared
// and allocates nothing. Store and Delete take a lock and cost O(1) amortised. The zero value is an empty map.
type Map[K Key, V any] struct {
	mu  sync.Mutex
	arr atomic.Pointer[array[K, V]]
}

type array[K Key, V any] struct {
	secret mix.Key // another one for each array
	shift  uint
	used   int // slots filled so far; at most 3/4
	live   int
	slots  []atomic.Pointer[entry[K, V]]
}

type entry[K Key, V any] struct {
	key  K
	val  V
	dead bool
}

// spread is 2^64 divided by the golden ratio: Fibonacci hashing uses the high bits, which depend on all bits of the key.
const spread = 0x9e3779b97f4a7c15

// find returns the slot of k, or the empty slot at the end of its chain.
func (a *array[K, V]) find(k K) (*atomic.Pointer[entry[K, V]], *entry[K, V]) {
	mask := len(a.slots) - 1
	for i := int(k.Hash(&a.secret) * spread >> a.shift); ; i++ {
		s := &a.slots[i&mask]
		if e := s.Load(); e == nil || e.key == k {
			return s, e
		}
	}
}

// Load returns the value of k.
func (m *Map[K, V]) Load(k K) (v V, ok bool) {
	a := m.arr.Load()
	if a == nil {
		return v, false
	}
	if _, e := a.find(k); e != nil && !e.dead {
		return e.val, true
	}
	return v, false
}

// Store sets the value of k.
func (m *Map[K, V]) Store(k K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.arr.Load()
	if a == nil || a.used*4 >= len(a.slots)*3 {
		a = m.rebuild(a)
	}
	s, old := a.find(k)
	if old == nil {
		a.used++
	}
	if old == nil || old.dead {
		a.live++
	}
	s.Store(&entry[K, V]{key: k, val: v})
}

// Delete removes k.
func (m *Map[K, V]) Delete(k K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.arr.Load()
	if a == nil {
		return
	}
	// The key stays, because chains may pass through its slot; a rebuild removes it.
	if s, e := a.find(k); e != nil && !e.dead {
		a.live--
		s.Store(&entry[K, V]{key: k, dead: true})
	}
}

func (m *Map[K, V]) rebuild(old *array[K, V]) *array[K, V] {
	size, shift := 8, uint(61)
	for old != nil && size < 2*(old.live+1) {
		size, shift = size*2, shift-1
	}
	a := &array[K, V]{secret: mix.New(), shift: shift, slots: make([]atomic.Pointer[entry[K, V]], size)}
	if old != nil {
		for i := range old.slots {
			if e := old.slots[i].Load(); e != nil && !e.dead {
				s, _ := a.find(e.key)
				s.Store(e)
				a.used++
				a.live++
			}
		}
	}
	m.arr.Store(a)
	return a
}

// Len returns the number of keys.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.arr.Load(); a != nil {
		return a.live
	}
	return 0
}

// All iterates over the map in no order. It may or may not see concurrent changes.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		a := m.arr.Load()
		if a == nil {
			return
		}
		for i := range a.slots {
			if e := a.slots[i].Load(); e != nil && !e.dead && !yield(e.key, e.val) {
				return
			}
		}
	}
}
