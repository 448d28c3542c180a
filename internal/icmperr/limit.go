package icmperr

import (
	"cmp"
	"encoding/binary"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// limitSets and placeSlots are the numbers of sets of words for senders, and of words for places, powers of two.
const (
	limitSets  = 1024
	placeSlots = 1024
)

// A Limiter limits the answers per second, to each sender and in all. Senders' addresses can be forged, so each place (a
// port or a peer) gets at most half of the total, and its senders are counted separately: a forger cannot use up the
// allowance of an address elsewhere. It does not wait or grow. A sender's count is in one of the four words that a hash of
// address and place selects; only if four others have these in the same second, it shares an allowance. The hash is seeded,
// so that a stranger cannot choose with whom.
type Limiter struct {
	perSender, total atomic.Uint32
	Seed             mix.Key // set by tests
	all              atomic.Uint64
	places           [placeSlots]atomic.Uint64
	senders          [limitSets][4]atomic.Uint64
}

// Defaults of a [Limiter].
const (
	DefaultPerSender = 10
	DefaultTotal     = 1000
)

// MaxRate is the maximum of both settings.
const MaxRate = 1_000_000_000

// Init sets PerSender and Total, 0 for their defaults.
func (l *Limiter) Init(perSender, total int) {
	l.Seed = mix.New()
	l.Set(perSender, total)
}

// Set changes the settings. Counting goes on meanwhile, and the current second's counts stay.
func (l *Limiter) Set(perSender, total int) {
	l.perSender.Store(uint32(cmp.Or(perSender, DefaultPerSender)))
	l.total.Store(uint32(cmp.Or(total, DefaultTotal)))
}

// Allow counts an answer to the host src of a network, about a packet from a place, and reports whether it may be sent. An
// answer above the sender's limit does not count towards the place's, and one above the place's does not count at all.
func (l *Limiter) Allow(src []byte, vni frame.VNI, from frame.Dest, now frame.Tick) bool {
	total := l.total.Load()
	place, share := l.place(from), (total+1)/2
	return left(place, now, share) && l.takeSender(l.hash(src, vni, from), now) &&
		take(place, now, share) && take(&l.all, now, total)
}

// takeSender is take for the sender with a hash.
func (l *Limiter) takeSender(hash uint64, now frame.Tick) bool {
	limit, set := l.perSender.Load(), &l.senders[hash%limitSets]
	for {
		w, old, next := word(set, hash, now)
		if uint32(next) > limit {
			return false
		}
		if w.CompareAndSwap(old, next) {
			return true
		}
	}
}

// word returns the word of the sender with a hash, and its value before and after one more answer. A word has a tag of the
// sender, 16 bits of the second of its last use, and a count. All workers take the first one that is free in the newest
// second of the set, which another worker's clock may have begun, so that a sender has only one.
func word(set *[4]atomic.Uint64, hash uint64, now frame.Tick) (w *atomic.Uint64, old, next uint64) {
	tag, second, free := hash>>48, uint16(now), -1
	var words [4]uint64
	for i := range set {
		words[i] = set[i].Load()
		if ahead := uint16(words[i]>>32) - second; uint32(words[i]) != 0 && ahead < 3 {
			second += ahead
		}
	}
	for i, x := range words {
		switch used := uint32(x) != 0 && uint16(x>>32) == second; {
		case used && x>>48 == tag:
			return &set[i], x, x + 1
		case !used && free < 0:
			free = i
		}
	}
	if free >= 0 {
		return &set[free], words[free], tag<<48 | uint64(second)<<32 | 1
	}
	i := hash >> 32 % 4 // shared
	return &set[i], words[i], words[i] + 1
}

// place returns the word of a place. The first thousand ports have different words, and so have the first thousand peers
// of a tunnel.
func (l *Limiter) place(from frame.Dest) *atomic.Uint64 {
	return &l.places[(uint32(from.Port())*0x9e37+uint32(from.Peer()))%placeSlots]
}

func (l *Limiter) hash(src []byte, vni frame.VNI, from frame.Dest) uint64 {
	var ip [16]byte
	n := copy(ip[:], src)
	return l.Seed.Hash320(&[5]uint64{binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:]), uint64(n), uint64(vni), uint64(from)})
}

// left reports whether another event is within the limit in the second now.
func left(w *atomic.Uint64, now frame.Tick, limit uint32) bool {
	old := w.Load()
	return int32(now-frame.Tick(old>>32)) > 0 || uint32(old) < limit
}

// take counts an event in the second now unless the limit is reached. A word has the second of its last use and a count.
func take(w *atomic.Uint64, now frame.Tick, limit uint32) bool {
	for {
		old := w.Load()
		second, n := frame.Tick(old>>32), uint32(old)
		if int32(now-second) > 0 {
			second, n = now, 0
		} // else it is the same, or another worker's is ahead
		if n >= limit {
			return false
		}
		if w.CompareAndSwap(old, uint64(second)<<32|uint64(n+1)) {
			return true
		}
	}
}
