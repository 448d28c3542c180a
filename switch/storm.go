package vswitch

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A Rate limits the flooded frames of one class. The zero Rate stands for the default. If one field is
// set, the other has no limit; 18446744073709551615 ([Unlimited]) is no limit either.
type Rate struct {
	Packets uint64 `json:"packets,omitzero"` // frames a second; a superframe counts as the frames it is cut into
	Bits    uint64 `json:"bits,omitzero"`    // bits a second, counted from the destination MAC, without FCS
}

// Unlimited, as Packets or Bits, means no limit.
const Unlimited = math.MaxUint64

// DefaultStorm returns the default rates of attachments other than tunnels. They are more than a network
// of thousands of hosts floods, and a loop exceeds them at once. If any attachment of the VSI has NoLearn,
// or the VSI itself, unknown unicast is normal and has no limit.
func DefaultStorm() Storm {
	return Storm{Broadcast: Rate{Packets: 10_000}, Multicast: Rate{Packets: 50_000}, UnknownUnicast: Rate{Packets: 50_000}}
}

// Storm is storm control: it limits the rate of flooded frames by class. Frames above a rate are dropped
// as frame.Storm. Each rate is a token bucket that holds one second of it, so after silence that much
// passes at once. A frame larger than the bucket passes when the bucket is full, and is paid for
// afterwards.
//
// Each attachment has its own buckets. The buckets of a segment are shared by everything that comes in, and by default have no
// limit. One port can use them up, within its own limits.
//
// Only frames that would be flooded count: not known unicast, nor requests that slot Neighbour answers.
// Frames that the gateway originates are not limited.
type Storm struct {
	Broadcast      Rate `json:"broadcast,omitzero"` // to ff:ff:ff:ff:ff:ff
	Multicast      Rate `json:"multicast,omitzero"` // to other group MACs
	UnknownUnicast Rate `json:"unknown,omitzero"`   // to MACs that are not in the FDB
}

// second is one second in units of a bucket's clock, a sixteenth of a nanosecond: a short frame at 100
// Gbit/s takes 82 of them. The clock wraps after 18 years.
const second = int64(time.Second) << 4

// now returns the time since the switch was made, in units of a bucket's clock. It is never 0.
func (s *Switch) now() int64 { return int64(time.Since(s.started))<<4 | 1 }

// A bucket is a token bucket that holds one second of a rate. All workers share it without a lock: one
// word says when it will be full again (the theoretical arrival time of the GCRA, ITU-T I.371).
type bucket struct {
	rate uint64
	full atomic.Int64
	_    [48]byte // keep buckets in separate cache lines
}

// take takes n tokens if the bucket has that many or is full. It returns what they cost in time.
func (b *bucket) take(n uint64, now int64) (cost int64, ok bool) {
	n = min(n, 1<<26)                             // so that n seconds fit an int64
	cost = max(1, int64(n*uint64(second)/b.rate)) // rounded down, so that all of a small rate fits a second
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

// meters are the buckets of a Storm by class, nil where there is no limit. The rate of a bucket never
// changes: a new rate gets a new bucket.
type meters [3]struct{ packets, bits *bucket }

// meters returns buckets for s, or nil if nothing is limited. It keeps the buckets of old where the rate
// is the same, and makes new ones as full as the old ones were.
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

// at returns a bucket with another rate that is as full as b, which may be nil.
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

// limits returns the buckets that apply in the VSI as it is now.
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

// admit takes what f costs from all buckets that apply, or from none.
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

// cost returns the number of frames that f is cut into, and their bits.
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
