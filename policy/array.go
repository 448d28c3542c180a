package policy

import (
	"math/bits"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// An array holds flows in buckets of eight; the hash of a flow names its two buckets. A word of
// the index has a byte for each slot of a bucket: some bits of the flow's hash, 0 for none. The
// index is a sixty-fourth of the slots and stays in a cache; of the slots a look-up reads the
// one cache line of the flow, and in one of thirty cases another.
//
// A writer swaps a slot's mark for a busy one, writes the flow and its byte of the index, and
// then the mark with the next version. Readers accept what they read between two loads of the
// same mark. So keys are exact, and no one waits. Two workers that track the same flow at once
// may store it twice; look-ups find one, and the other ages.
type array struct {
	index []atomic.Uint64
	slots []flow
}

const bucket = 8

// A flow is a cache line.
type flow struct {
	mark  atomic.Uint64
	key   [5]atomic.Uint64
	state atomic.Uint64
	seen  atomic.Uint32
	group atomic.Uint32 // of its opener
}

// The mark of a slot is
//
//	version 30 | status 2 | where the flow was opened 32
const (
	statusFree = 0 << 32
	statusBusy = 1 << 32
	statusLive = 2 << 32
	statusBoth = 3 << 32 // copied to a newer array
	statusMask = 3 << 32
	bothBit    = statusBoth &^ statusLive
	oneVersion = 1 << 34
)

func version(mark uint64) uint32     { return uint32(mark >> 34) }
func ownerOf(mark uint64) frame.Dest { return frame.Dest(mark) }

// A found is a flow at the time of its look-up.
type found struct {
	s     *flow
	a     *array
	i     uint64
	mark  uint64
	state state
	seen  frame.Tick
	group uint16
}

func newArray(slots int) *array {
	n := (slots + bucket - 1) / bucket
	return &array{index: make([]atomic.Uint64, n), slots: make([]flow, n*bucket)}
}

func (a *array) size() int { return len(a.slots) }

// homes returns the two buckets of a hash.
func (a *array) homes(h uint64) [2]uint64 {
	b1, _ := bits.Mul64(h, uint64(len(a.index)))
	b2, _ := bits.Mul64(bits.RotateLeft64(h, 32), uint64(len(a.index)))
	return [2]uint64{b1, b2}
}

// tag returns a byte from the middle of the bits that homes uses, never 0.
func tag(h uint64) uint64 { return max(h>>12&0xff, 1) }

// Bytes of a word of the index.
const (
	lowBits  = 0x0101010101010101
	highBits = lowBits << 7
)

// zeros returns the high bits of the bytes that are 0.
func zeros(w uint64) uint64 { return ^((w &^ highBits) + ^uint64(highBits) | w) & highBits }

// find looks a flow up.
func (a *array) find(w *key, h uint64) (x found, ok bool) {
	want := tag(h) * lowBits
	for _, home := range a.homes(h) {
		for z := zeros(a.index[home].Load() ^ want); z != 0; z &= z - 1 {
			i := home*bucket + uint64(bits.TrailingZeros64(z)/8)
			s := &a.slots[i]
			m := s.mark.Load()
			if m&statusLive == 0 ||
				s.key[0].Load() != w[0] || s.key[1].Load() != w[1] || s.key[2].Load() != w[2] ||
				s.key[3].Load() != w[3] || s.key[4].Load() != w[4] {
				continue
			}
			x = found{s, a, i, m, state(s.state.Load()), frame.Tick(s.seen.Load()), uint16(s.group.Load())}
			if now := s.mark.Load(); now == m || now == m|bothBit {
				return x, true
			}
		}
	}
	return x, false
}

// read returns the flow in a slot, if there is one.
func (a *array) read(i uint64) (w key, x found, ok bool) {
	s := &a.slots[i]
	m := s.mark.Load()
	if m&statusLive == 0 {
		return w, x, false
	}
	for n := range w {
		w[n] = s.key[n].Load()
	}
	x = found{s, a, i, m, state(s.state.Load()), frame.Tick(s.seen.Load()), uint16(s.group.Load())}
	return w, x, s.mark.Load() == m
}

// few is how many free slots the first bucket must have to be preferred.
const few = 4

// free returns a free slot and its mark: in the first bucket, where look-ups begin, if it has a
// few; else in the one with more.
func (a *array) free(homes [2]uint64) (at, mark uint64, ok bool) {
	z := [2]uint64{zeros(a.index[homes[0]].Load()), zeros(a.index[homes[1]].Load())}
	n := [2]int{bits.OnesCount64(z[0]), bits.OnesCount64(z[1])}
	first := 0
	if n[0] < few && n[1] > n[0] {
		first = 1
	}
	for _, b := range [2]int{first, 1 - first} {
		for z := z[b]; z != 0; z &= z - 1 {
			i := homes[b]*bucket + uint64(bits.TrailingZeros64(z)/8)
			if m := a.slots[i].mark.Load(); m&statusMask == statusFree {
				return i, m, true
			}
		}
	}
	return 0, 0, false
}

// A newFlow is a flow to insert, without its key.
type newFlow struct {
	state state
	seen  frame.Tick
	group uint16
	owner frame.Dest // where it was opened
}

// claim puts a flow into a slot, unless its mark has changed.
func (a *array) claim(i, mark uint64, w *key, h uint64, n *newFlow) (x found, ok bool) {
	s := &a.slots[i]
	mark, was := mark>>34<<34+oneVersion|uint64(n.owner), mark
	if !s.mark.CompareAndSwap(was, mark|statusBusy) {
		return x, false
	}
	for n := range w {
		s.key[n].Store(w[n])
	}
	s.state.Store(uint64(n.state.stamped(version(mark))))
	s.seen.Store(uint32(n.seen))
	s.group.Store(uint32(n.group))
	a.note(i, tag(h))
	s.mark.Store(mark | statusLive)
	return found{s: s, a: a, i: i, mark: mark | statusLive}, true
}

// note writes the index byte of a slot that the caller has made busy.
func (a *array) note(i, tag uint64) {
	word, shift := &a.index[i/bucket], i%bucket*8
	for {
		w := word.Load()
		if word.CompareAndSwap(w, w&^(0xff<<shift)|tag<<shift) {
			return
		}
	}
}

// remove ends a flow, unless its slot has another one.
func (x *found) remove() bool {
	if !x.s.mark.CompareAndSwap(x.mark, x.mark&^statusMask|statusBusy) {
		return false
	}
	x.a.note(x.i, 0)
	x.s.mark.Store(x.mark &^ statusMask)
	return true
}

// change sets the state of a flow, unless it has changed since.
func (x *found) change(to state) {
	to = to.stamped(version(x.mark))
	if to != x.state && x.s.state.CompareAndSwap(uint64(x.state), uint64(to)) {
		x.state = to
	}
}

// regroup updates the group of the opener. If the slot has just got another flow, that has a wrong
// group until the rules decide on it again.
func (x *found) regroup(group uint16) {
	if now := x.s.mark.Load(); group != x.group && (now == x.mark || now == x.mark|bothBit) {
		x.s.group.Store(uint32(group))
		x.group = group
	}
}

// touch notes a packet of the flow, once a tick.
func (x *found) touch(now frame.Tick) {
	if int32(now-x.seen) > 0 {
		x.s.seen.Store(uint32(now))
	}
}

// age returns the ticks since the last packet, 0 if a worker's clock ran ahead.
func (x *found) age(now frame.Tick) uint32 { return uint32(max(0, int32(now-x.seen))) }
