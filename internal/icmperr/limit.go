package icmperr

import (
	"cmp"
	"encoding/binary"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// limitSlots is how many words senders share, placeSlots how many places do: powers of two.
const (
	limitSlots = 4096
	placeSlots = 1024
)

// A Limiter bounds how many answers one sender gets in a second, and all of them together.
// Senders are whoever a host says it is, so what comes from one place, a port or a peer, gets
// half of the total, and its senders' counts are their own: in its name nobody else's
// allowance can be spent. It neither waits nor grows: a sender's count is in the word that its
// address and place hash to, so two senders may now and then share one allowance. The hash
// has a seed of its own, so that a stranger cannot choose with whom.
type Limiter struct {
	perSender, total atomic.Uint32
	Seed             mix.Key // tests choose it
	all              atomic.Uint64
	places           [placeSlots]atomic.Uint64
	senders          [limitSlots]atomic.Uint64
}

// Defaults of a [Limiter].
const (
	DefaultPerSender = 10
	DefaultTotal     = 1000
)

// MaxRate bounds what settings may ask for.
const MaxRate = 1_000_000_000

// Init makes a Limiter of the settings PerSender and Total, 0 for their defaults.
func (l *Limiter) Init(perSender, total int) {
	l.Seed = mix.New()
	l.Set(perSender, total)
}

// Set changes the settings, also while answers are counted: a second's count goes on.
func (l *Limiter) Set(perSender, total int) {
	l.perSender.Store(uint32(cmp.Or(perSender, DefaultPerSender)))
	l.total.Store(uint32(cmp.Or(total, DefaultTotal)))
}

// Allow counts one answer to the host src of a network, about a packet from a place, and
// reports whether there was room for it. What is beyond a sender's own limit does not count
// against the others'; what is beyond the place's does not count at all.
func (l *Limiter) Allow(src []byte, vni frame.VNI, from frame.Dest, now frame.Tick) bool {
	total := l.total.Load()
	place, share := l.place(from), (total+1)/2
	return left(place, now, share) && take(&l.senders[l.hash(src, vni, from)%limitSlots], now, l.perSender.Load()) &&
		take(place, now, share) && take(&l.all, now, total)
}

// place returns the word of a place: no two of the first thousand ports share one, nor do two
// of the first thousand peers of one tunnel.
func (l *Limiter) place(from frame.Dest) *atomic.Uint64 {
	return &l.places[(uint32(from.Port())*0x9e37+uint32(from.Peer()))%placeSlots]
}

func (l *Limiter) hash(src []byte, vni frame.VNI, from frame.Dest) uint64 {
	var ip [16]byte
	n := copy(ip[:], src)
	return l.Seed.Hash320(&[5]uint64{binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:]), uint64(n), uint64(vni), uint64(from)})
}

// left reports whether there is room for one more event in the second now.
func left(w *atomic.Uint64, now frame.Tick, limit uint32) bool {
	old := w.Load()
	return int32(now-frame.Tick(old>>32)) > 0 || uint32(old) < limit
}

// take counts one event in the second now, unless limit are counted. A word is the
// second it was last used in, and how often.
func take(w *atomic.Uint64, now frame.Tick, limit uint32) bool {
	for {
		old := w.Load()
		second, n := frame.Tick(old>>32), uint32(old)
		if int32(now-second) > 0 {
			second, n = now, 0
		} // else the same, or another worker is ahead of this one
		if n >= limit {
			return false
		}
		if w.CompareAndSwap(old, uint64(second)<<32|uint64(n+1)) {
			return true
		}
	}
}
