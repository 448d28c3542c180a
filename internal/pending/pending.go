// Package pending bounds how often a control plane is asked: once for each key, until
// the answer had its time to come.
package pending

import (
	"hash/maphash"
	"sync/atomic"
)

// slots is how many keys may be asked for at a time: a power of two.
const slots = 1024

// A Set is the keys that have been asked for. It neither waits nor grows: a key is a word
// that its hash chooses, and one that finds another in its place has to wait until that is
// over. The hash has a seed of its own, so that a stranger cannot choose who waits for
// whom. Make one with New.
type Set[K comparable] struct {
	timeout uint32
	seed    maphash.Seed
	asked   [slots]atomic.Uint64 // half a hash, and the tick after it was asked for; 0 = free
}

// New returns an empty set. A key is asked for anew after timeout ticks.
func New[K comparable](timeout uint32) *Set[K] {
	return &Set[K]{timeout: timeout, seed: maphash.MakeSeed()}
}

// Take reports whether k is to be asked for now: it is not pending, and there is room.
func (s *Set[K]) Take(k K, now uint32) bool {
	slot, word := s.word(k, now)
	for {
		old := slot.Load()
		// The age is negative where a worker's clock is behind that of who asked.
		if age := int32(now - (uint32(old) - 1)); old != 0 && (age < 0 || uint32(age) < s.timeout) {
			return false // this key, or another in its place
		}
		if slot.CompareAndSwap(old, word) {
			return true
		}
	}
}

func (s *Set[K]) word(k K, now uint32) (*atomic.Uint64, uint64) {
	h := maphash.Comparable(s.seed, k)
	return &s.asked[h%slots], h>>32<<32 | uint64(now+1)
}
