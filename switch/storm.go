package vswitch

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A Rate bounds what is flooded of one class. Left out it is the default of the place; where
// one field is set, the other has no bound, and 18446744073709551615 ([Unlimited]) is none either.
type Rate struct {
	Packets uint64 `json:"packets,omitzero"` // in a second; a superframe counts as the frames it is cut into
	Bits    uint64 `json:"bits,omitzero"`    // in a second, of frames from the destination MAC on, without FCS
}

// Unlimited as Packets or Bits is no bound, as 0 is beside the other one.
const Unlimited = math.MaxUint64

// DefaultStorm returns what zero Rates of an attachment stand for, on a port that is no tunnel: more
// than any network of thousands of hosts floods, and what a loop reaches at once. Where sources
// are not learned on every attachment unknown unicast is no sign of a loop, and has no bound.
func DefaultStorm() Storm {
	return Storm{Broadcast: Rate{Packets: 10_000}, Multicast: Rate{Packets: 50_000}, UnknownUnicast: Rate{Packets: 50_000}}
}

// Storm is storm control: rates of flooded frames by class. Frames beyond a rate are
// dropped under frame.Storm. A rate is a token bucket that holds one second of it: after
// silence that much passes at once. A frame that is more than that by itself passes
// when the bucket is full, and is paid for afterwards.
//
// A port's attachment has buckets of its own, by default 10,000 packets of broadcast and
// 50,000 each of multicast and unknown unicast (DefaultStorm). Those of a segment,
// by default none, are shared by all that comes in: one port can use them up, up to its own.
//
// Only what would be flooded counts, so that neither known unicast nor a question the
// neighbour slot answers does. What the gateway sends of its own is not limited.
type Storm struct {
	Broadcast      Rate `json:"broadcast,omitzero"` // to ff:ff:ff:ff:ff:ff
	Multicast      Rate `json:"multicast,omitzero"` // to other group MACs
	UnknownUnicast Rate `json:"unknown,omitzero"`   // to MACs that the segment does not know
}

// second is one, in the unit of a bucket's clock: a sixteenth of a nanosecond, in which a
// short frame at 100 Gbit/s is 82. It goes round after 18 years.
const second = int64(time.Second) << 4

// now returns the time since the switch began, in the unit of buckets. It is never 0.
func (s *Switch) now() int64 { return int64(time.Since(s.started))<<4 | 1 }

// A bucket holds tokens of one rate. All workers share it, without a lock: one word says
// when it will be full again (the theoretical arrival time of ITU-T I.371, GCRA). It holds
// one second of the rate.
type bucket struct {
	rate uint64
	full atomic.Int64
	_    [48]byte // others in use by others
}

// take takes n tokens if there are so many, or if the bucket is full. It returns what they
// cost in time.
func (b *bucket) take(n uint64, now int64) (cost int64, ok bool) {
	n = min(n, 1<<26)                             // n seconds are then a number
	cost = max(1, int64(n*uint64(second)/b.rate)) // down, so that a second holds all of a small rate
	for {
		full := b.full.Load()
		next := max(full, now) + cost
		if next-now > max(second, cost) {
			return 0, false
		}
		if b.full.CompareAndSwap(full, next) {
			return cost, true
		}
	}
}

// meters are the buckets of a Storm by class, nil where there is no limit. Their rates never
// change: another rate is another bucket.
type meters [3]struct{ packets, bits *bucket }

// meters returns buckets for s, nil when nothing is limited. Those of old go on as they
// are where the rate is the same, and else as full as they were.
func (s *Storm) meters(old *meters, now int64) *meters {
	if *s == (Storm{}) {
		return nil
	}
	if old == nil {
		old = new(meters)
	}
	m := new(meters)
	for i, r := range []Rate{s.Broadcast, s.Multicast, s.UnknownUnicast} {
		m[i].packets = old[i].packets.at(r.Packets, now)
		m[i].bits = old[i].bits.at(r.Bits, now)
	}
	return m
}

// at returns the bucket with another rate; b may be nil.
func (b *bucket) at(rate uint64, now int64) *bucket {
	switch {
	case rate == 0, rate == Unlimited:
		return nil
	case b != nil && b.rate == rate:
		return b
	}
	x := &bucket{rate: rate}
	if b != nil {
		x.full.Store(min(b.full.Load(), now+second))
	}
	return x
}

// meters returns the buckets of an attachment with these settings.
func (a *Attachment) meters(now int64) *meters {
	s := a.cfg.Storm
	if a.port.tunnel == nil {
		d := DefaultStorm()
		for _, r := range [][2]*Rate{{&s.Broadcast, &d.Broadcast}, {&s.Multicast, &d.Multicast}, {&s.UnknownUnicast, &d.UnknownUnicast}} {
			if *r[0] == (Rate{}) {
				*r[0] = *r[1]
			}
		}
	}
	return s.meters(a.storm, now)
}

// limits returns the buckets that hold in the VSI as it is now.
func (a *Attachment) limits() [2]*meters {
	v, m := a.vsi, a.storm
	unlearned := v.cfg.NoLearn || slices.ContainsFunc(v.members, func(m *Attachment) bool { return m.cfg.NoLearn })
	if unlearned && m != nil && a.cfg.Storm.UnknownUnicast == (Rate{}) {
		n := *m
		n[UnknownUnicast>>1].packets = nil
		m = &n
	}
	return [2]*meters{m, v.storm}
}

// admit takes what f costs from all buckets in its way, or from none.
func (w *worker) admit(f *frame.Frame, c *circuit, class Class) bool {
	frames, bits := cost(f)
	var taken [4]struct {
		b    *bucket
		cost int64
	}
	k := 0
	for _, m := range c.storm {
		if m == nil {
			continue
		}
		for i, b := range [2]*bucket{m[class>>1].packets, m[class>>1].bits} {
			if b == nil {
				continue
			}
			if w.now == 0 {
				w.now = w.sw.now()
			}
			x, ok := b.take([2]uint64{frames, bits}[i], w.now)
			if !ok {
				for _, t := range taken[:k] {
					t.b.full.Add(-t.cost)
				}
				return false
			}
			taken[k].b, taken[k].cost = b, x
			k++
		}
	}
	return true
}

// cost returns how many frames f is once it is cut, and how many bits they have.
func cost(f *frame.Frame) (frames, bits uint64) {
	n := f.Len()
	head := int(f.GSO.DataStart) - f.Headroom()
	if f.GSO.Size == 0 || head <= 0 || head >= n {
		return 1, 8 * uint64(n)
	}
	size := int(f.GSO.Size)
	k := (n - head + size - 1) / size
	return uint64(k), 8 * uint64(n+(k-1)*head)
}
