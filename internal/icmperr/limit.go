package icmperr

import (
	"cmp"
	"encoding/binary"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// limitSlots and placeSlots are the numbers of words for senders and for places, powers of two.
const (
	limitSlots = 4096
	placeSlots = 1024
)

// A Limiter limits the answers per second, to each sender and in all. Senders' addresses can be forged, so each place (a
// port or a peer) gets at most half of the total, and its senders are counted separately: a forger cannot use up the
// allowance of an address elsewhere. It does not wait or grow. A sender's count is in a word selected by a hash of address
// and place, so two senders may share an allowance. The hash is seeded, so that a stranger cannot choose with whom.
type Limiter struct {
	perSender, total atomic.Uint32
	Seed             mix.Key // set by tests
	all              atomic.Uint64
	places           [placeSlots]atomic.Uint64
	senders          [limitSlots]atomic.Uint64
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
	return left(place, now, share) && take(&l.senders[l.hash(src, vni, from)%limitSlots], now, l.perSender.Load()) &&
		take(place, now, share) && take(&l.all, now, total)
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
