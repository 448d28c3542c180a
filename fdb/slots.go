package fdb

import (
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// A slot has one entry in two words, and a third in array.meta, so that a look-up touches few
// cache lines:
//
//	key   MAC 48                         | stamp 16
//	val   Dest 32 | generation 15 | pinned 1 | stamp 16
//	meta  seen 32 | since 16 | moves 8 | flags 8
//
// A slot whose MAC is zero is empty and ends a chain. A slot whose val is zero, or of an old
// generation, is dead: it stays in its chain until its own MAC or another one uses it, or no slot
// follows it.
//
// Readers load key, then val, without a lock, and the slot may get another MAC in between. The
// stamp shows that: each MAC in a slot has a new one, the new val is stored before the new key,
// and a reader accepts only a val with the stamp of the key. (Bits of the MAC in val would not
// do: senders choose their MACs.) The stamp fails only if a slot changes its MAC exactly 65535
// times, or a multiple of that, between two consecutive loads. Stamps are never 0, so a val of
// 0 belongs to no key.
type slot struct{ key, val atomic.Uint64 }

const (
	stampMask = 1<<16 - 1
	genMask   = 1<<15 - 1
	minSlots  = 16
	maxDirect = 4096 // slots up to which Learn itself rebuilds a table
)

func newVal(d frame.Dest, gen, class uint64) uint64 { return uint64(d)<<32 | gen<<17 | class<<16 }

func destOf(v uint64) frame.Dest { return frame.Dest(v >> 32) }
func genOf(v uint64) uint64      { return v >> 17 & genMask }
func classOf(v uint64) uint64    { return v >> 16 & 1 }

func nextStamp(k uint64) uint64 {
	if k&stampMask == stampMask {
		return 1
	}
	return k&stampMask + 1
}

// An array is the memory of a table until it is rebuilt. The number of slots is a power of two, of
// which at most seven eighths are used.
type array struct {
	slots []slot
	seed  mix.Key
	meta  []atomic.Uint64
	links []link // only in tables that evict
	mark  []mark // since the first move; under the table's lock
}

func newArray(size int, evict bool) *array {
	a := &array{
		slots: make([]slot, size),
		meta:  make([]atomic.Uint64, size),
		seed:  mix.New(),
	}
	if evict {
		a.links = make([]link, size)
	}
	return a
}

// roomy is the number of slots from which memory matters more than the time of a look-up.
const roomy = 1 << 14

// fill returns how many slots of an array of that size are used before it is rebuilt: three quarters, but of a small one
// half of that, so that few look-ups need a second slot.
func fill(size int) int {
	if size < roomy {
		return size / 8 * 3
	}
	return size / 4 * 3
}

// sizeFor returns the number of slots for n entries.
func sizeFor(n int) int {
	size := minSlots
	for fill(size) < n {
		size *= 2
	}
	return size
}

// home returns the first slot of a MAC's chain. Each array has a new seed, so that senders cannot
// choose MACs with one chain.
func (a *array) home(mac uint64) uint64 { return a.seed.Hash64(mac) }

// find returns the slot of a MAC and its val, also of a dead entry, but not of a slot that is getting
// another MAC.
func (a *array) find(mac uint64) (i, v uint64, ok bool) {
	mask := uint64(len(a.slots) - 1)
	for i = a.home(mac) & mask; ; i = (i + 1) & mask {
		s := &a.slots[i]
		switch k := s.key.Load(); k >> 16 {
		case 0: // first: the zero MAC is nowhere
			return i, 0, false
		case mac:
			v = s.val.Load()
			return i, v, (v^k)&stampMask == 0
		}
	}
}

// trim empties the dead slots at the end of a chain: slot i, which was cleared, and those before it.
// It returns their number. Concurrent look-ups miss nothing, since no slot follows.
func (a *array) trim(i uint64) (n int) {
	mask := uint64(len(a.slots) - 1)
	if a.slots[(i+1)&mask].key.Load()>>16 != 0 {
		return 0
	}
	for ; ; i = (i - 1) & mask {
		s := &a.slots[i]
		k := s.key.Load()
		if k>>16 == 0 || s.val.Load() != 0 {
			return n
		}
		s.key.Store(k & stampMask) // keeps the stamp
		n++
	}
}

// Flags of a meta word, besides those of Set.
const (
	frozen   Flags = 1 << 6 // moved too often: stays for FreezeTime
	removing Flags = 1 << 7 // being removed or copied: a refresh would be lost
)

func newMeta(seen, since frame.Tick, moves uint8, f Flags) uint64 {
	return uint64(seen)<<32 | uint64(since&0xffff)<<16 | uint64(moves)<<8 | uint64(f)
}

func seenOf(m uint64) frame.Tick { return frame.Tick(m >> 32) }
func movesOf(m uint64) uint8     { return uint8(m >> 8) }
func flagsOf(m uint64) Flags     { return Flags(m) }

// inWindow reports whether the count of moves in m began less than window ticks ago. It has 16
// bits of that tick, so Sweep clears old counts in time.
func inWindow(m uint64, now frame.Tick, window uint16) bool {
	return uint16(now)-uint16(m>>16) < window
}

// ageOf returns the ticks from seen to now, 0 if a worker's clock is behind.
func ageOf(seen, now frame.Tick) frame.Tick {
	if age := now - seen; int32(age) > 0 {
		return age
	}
	return 0
}
