// Package pending bounds how often a control plane is asked: once for each key, until
// the answer had its time to come.
package pending

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	slots  = 4096 // how many keys may be asked for at a time
	ways   = 8    // how many of them a key may be in
	share  = slots / 8
	places = 256
)

// A Set is the keys that have been asked for. It neither waits nor grows: a key is in one of
// eight words that its hash chooses, and one that finds others in all of them has to wait until
// that is over for one. Each place that keys come from has a share of a timeout's questions, so
// that one which asks for ever other keys leaves room. The hash has a seed of its own, so that
// a stranger cannot choose who waits for whom. Make one with New.
type Set[K comparable] struct {
	timeout uint32
	seed    maphash.Seed
	asked   [slots]atomic.Uint64  // half a hash, and the tick after it was asked for; 0 = free
	from    [places]atomic.Uint64 // a timeout's number, and how many keys were asked for in it
}

// New returns an empty set. A key is asked for anew after timeout ticks.
func New[K comparable](timeout uint32) *Set[K] {
	return &Set[K]{timeout: timeout, seed: maphash.MakeSeed()}
}

// Take reports whether k, which comes from a port and one of the peers behind it, is to be asked
// for now: it is not pending, and there is room.
func (s *Set[K]) Take(k K, port, peer uint16, now uint32) bool {
	h := maphash.Comparable(s.seed, k)
	set := s.asked[h%(slots/ways)*ways:][:ways]
	for counted := false; ; {
		var free *atomic.Uint64
		var was uint64
		for i := range set {
			old := set[i].Load()
			// The age is negative where a worker's clock is behind that of who asked.
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

// count counts a key of a place, unless that has had its share.
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
