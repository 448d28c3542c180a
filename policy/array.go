package policy

import (
	"math/bits"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// An array holds flows in buckets of eight; each flow is in one of two buckets, which its
// hash names. For each slot there is a mark, those of a bucket in one cache line:
//
//	version 32 | tag of the hash 24 | status 8
//
// Who wants a slot swaps its mark for a busy one, writes the flow, and then the mark with
// the next version. Readers take what they read between two loads of the same mark. So
// keys are exact, and nobody waits. Two workers that track the same flow at once may leave
// it twice; one of the two is found, the other ages.
type array struct {
	buckets []eight
	live    atomic.Int64
}

// eight slots lie with their marks, so that what is looked at is in one page, mostly.
type eight struct {
	marks [bucket]atomic.Uint64
	slots [bucket]flow
}

const (
	bucket     = 8
	few        = 4
	statusFree = 0
	statusBusy = 1
	statusLive = 2
	statusBoth = 3 // copied to a newer array
	statusMask = 0xff
	tagMask    = 0xffffff00
)

// A flow is a cache line.
type flow struct {
	key   [5]atomic.Uint64
	state atomic.Uint64
	seen  atomic.Uint32
	group atomic.Uint32 // of its opener
	_     [2]uint32
}

// A found is a flow as it was when it was looked up.
type found struct {
	a     *array
	i     uint64
	mark  uint64
	state state
	seen  frame.Tick
	group uint16
}

func newArray(slots int) *array {
	return &array{buckets: make([]eight, (slots+bucket-1)/bucket)}
}

func (a *array) size() int                    { return len(a.buckets) * bucket }
func (a *array) mark(i uint64) *atomic.Uint64 { return &a.buckets[i/bucket].marks[i%bucket] }
func (a *array) slot(i uint64) *flow          { return &a.buckets[i/bucket].slots[i%bucket] }

// homes returns where the two buckets of a hash begin.
func (a *array) homes(h uint64) [2]uint64 {
	b1, _ := bits.Mul64(h, uint64(len(a.buckets)))
	b2, _ := bits.Mul64(bits.RotateLeft64(h, 32), uint64(len(a.buckets)))
	return [2]uint64{b1 * bucket, b2 * bucket}
}

// tag returns bits of a hash that are in the middle of what homes looks at.
func tag(h uint64) uint64 { return h >> 4 & tagMask }

func version(mark uint64) uint32 { return uint32(mark >> 32) }

// find looks a flow up.
func (a *array) find(w *key, h uint64) (x found, ok bool) {
	want := tag(h) | statusBoth
	for _, home := range a.homes(h) {
		b := &a.buckets[home/bucket]
		for n := range uint64(bucket) {
			m := b.marks[n].Load()
			if m&(1<<32-1)|1 != want {
				continue
			}
			s := &b.slots[n]
			if s.key[0].Load() != w[0] || s.key[1].Load() != w[1] || s.key[2].Load() != w[2] ||
				s.key[3].Load() != w[3] || s.key[4].Load() != w[4] {
				continue
			}
			x = found{a, home + n, m, state(s.state.Load()), frame.Tick(s.seen.Load()), uint16(s.group.Load())}
			if now := b.marks[n].Load(); now == m || now == m|1 {
				return x, true
			}
		}
	}
	return x, false
}

// read returns the flow in a slot, if there is one.
func (a *array) read(i uint64) (w key, x found, ok bool) {
	m := a.mark(i).Load()
	if m&statusMask < statusLive {
		return w, found{mark: m}, false
	}
	s := a.slot(i)
	for n := range w {
		w[n] = s.key[n].Load()
	}
	x = found{a, i, m, state(s.state.Load()), frame.Tick(s.seen.Load()), uint16(s.group.Load())}
	return w, x, a.mark(i).Load() == m
}

// free returns a free slot: of the first bucket, where flows are found sooner, if it has a
// few; else of the one that has more of them.
func (a *array) free(homes [2]uint64) (at, mark uint64, ok bool) {
	most := 0
	for _, home := range homes {
		n, first, its := 0, uint64(0), uint64(0)
		for i := home; i < home+bucket; i++ {
			if m := a.mark(i).Load(); m&statusMask == statusFree {
				if n++; n == 1 {
					first, its = i, m
				}
			}
		}
		if n > most {
			most, at, mark = n, first, its
		}
		if n >= few {
			break
		}
	}
	return at, mark, most != 0
}

// claim puts a flow into a slot whose mark was seen before; false when it has another now.
func (a *array) claim(i, mark uint64, w *key, h uint64, st state, seen frame.Tick, group uint16) bool {
	v := version(mark) + 1
	if !a.mark(i).CompareAndSwap(mark, uint64(v)<<32|statusBusy) {
		return false
	}
	s := a.slot(i)
	for n := range w {
		s.key[n].Store(w[n])
	}
	s.state.Store(uint64(st.stamped(v)))
	s.seen.Store(uint32(seen))
	s.group.Store(uint32(group))
	a.mark(i).Store(uint64(v)<<32 | tag(h) | statusLive)
	return true
}

// remove ends a flow, unless its slot has gone to another.
func (x *found) remove() bool {
	if x.a.mark(x.i).CompareAndSwap(x.mark, x.mark>>32<<32) {
		if x.mark&1 == 0 {
			x.a.live.Add(-1)
		}
		return true
	}
	return false
}

// change sets the state of a flow, unless it has changed since.
func (x *found) change(to state) {
	to = to.stamped(version(x.mark))
	if to != x.state && x.a.slot(x.i).state.CompareAndSwap(uint64(x.state), uint64(to)) {
		x.state = to
	}
}

// regroup notes the group of an opener whose packet the rules have judged. Should the slot have
// gone to another flow just now, that one has a wrong group until the rules judge it again.
func (x *found) regroup(group uint16) {
	if group != x.group && x.a.mark(x.i).Load() == x.mark {
		x.a.slot(x.i).group.Store(uint32(group))
		x.group = group
	}
}

// touch notes that a packet of the flow has been seen: once a tick.
func (x *found) touch(now frame.Tick) {
	if int32(now-x.seen) > 0 {
		x.a.slot(x.i).seen.Store(uint32(now))
	}
}

// age returns the ticks since the last packet, 0 if a worker's clock ran ahead.
func (x *found) age(now frame.Tick) uint32 { return uint32(max(0, int32(now-x.seen))) }
