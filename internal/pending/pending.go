// Package pending limits requests to a control plane: one for each key until the answer has had time to arrive.
package pending

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	slots  = 4096 // maximum of pending keys
	ways   = 8    // slots a key may use
	share  = slots / 8
	places = 256
)

// A Set holds the keys that are pending. It does not wait or grow: a key is in one of eight words that its hash selects,
// and waits until one of them is free. Each origin of keys has a share of the requests per timeout, so that one with ever
// new keys leaves room for others. The hash is seeded, so that a stranger cannot choose which keys collide. Make one with
// New.
type Set[K comparable] struct {
	timeout uint32
	seed    maphash.Seed
	asked   [slots]atomic.Uint64  // half a hash, and the tick after the request; 0 = free
	from    [places]atomic.Uint64 // number of a timeout, and the keys requested in it
}

// New returns an empty set. A key is pending for timeout ticks.
func New[K comparable](timeout uint32) *Set[K] {
	return &Set[K]{timeout: timeout, seed: maphash.MakeSeed()}
}

// Take reports whether to request k, which comes from a port and one of the peers behind it: k is not pending and there is
// room.
func (s *Set[K]) Take(k K, port, peer uint16, now uint32) bool {
	h := maphash.Comparable(s.seed, k)
	set := s.asked[h%(slots/ways)*ways:][:ways]
	for counted := false; ; {
		var free *atomic.Uint64
		var was uint64
		for i := range set {
			old := set[i].Load()
			// The age is negative if this worker's clock is behind that of the one that asked.
			age := int32(now - (uint32(old) - 1))
			switch pending := old != 0 && (age < 0 || uint32(age) < s.timeout); {
			case pending && old>>32 == h>>32:
				return false
			case !pending && free == nil:
				free, was = &set[i], old
			}
		}
		if free == nil || !counted && !s.count(port, peer, now) {
			return false
		}
		counted = true
		if free.CompareAndSwap(was, h>>32<<32|uint64(now+1)) {
			return true
		}
	}
}

// count counts a key of an origin, if that has a share left.
func (s *Set[K]) count(port, peer uint16, now uint32) bool {
	w, turn := &s.from[(uint32(port)*0x9e37+uint32(peer))%places], now/max(s.timeout, 1)
	for {
		old := w.Load()
		n := uint32(old)
		if uint32(old>>32) != turn {
			n = 0
		}
		if n >= share {
			return false
		}
		if w.CompareAndSwap(old, uint64(turn)<<32|uint64(n+1)) {
			return true
		}
	}
}
