package fdb

import (
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// A slot holds one entry in two words, and a third in a row beside it, so that a
// look-up touches as few cache lines as it can:
//
//	key   MAC 48                         | stamp 16
//	val   Dest 32 | generation 15 | pinned 1 | stamp 16
//	meta  seen 32 | since 16 | moves 8 | flags 8
//
// A slot whose MAC is zero is empty and ends a chain. A slot whose val is zero,
// or whose generation has passed, is dead: it stays in its chain until its own MAC
// comes back, another MAC claims it, or nothing follows it any more.
//
// Readers load key, then val, without a lock, and the slot may change owner in
// between. The stamp tells: it is renewed whenever a slot goes to another MAC,
// the new val is stored before the new key, and a reader takes a val only with
// the stamp of the key it saw. Bits of the MAC repeated in val would do that only
// for MACs that differ in those bits, and whoever sends frames chooses MACs. For a
// stamp to deceive, a slot has to change owner exactly 65535 times, or a multiple
// of it, between two loads that follow each other. Stamps are never 0, so a val
// of 0 fits no key.
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

// array is one generation of a table's memory: slots in a power of two, never
// more than seven eighths of them used.
type array struct {
	slots []slot
	seed  mix.Key
	meta  []atomic.Uint64
	links []link // only in tables that evict
	mark  []mark // from the first move on; under the table's lock
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

// sizeFor returns how many slots hold n entries at no more than three quarters.
func sizeFor(n int) int {
	size := minSlots
	for size/4*3 < n {
		size *= 2
	}
	return size
}

// home returns where the chain of a MAC starts. The seed is new in every array, so nobody can
// send MACs that pile up.
func (a *array) home(mac uint64) uint64 { return a.seed.Hash64(mac) }

// find returns the slot of a MAC and its val. It finds dead entries too, but none
// whose slot is changing owner.
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

// trim empties the dead slots at the end of a chain: slot i, just cleared, and
// those before it, if nothing follows. It returns how many. A look-up on its way
// through them misses nothing: behind them there was nothing.
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

// Meta words. The flags are those of Set and the two below.
const (
	frozen   Flags = 1 << 6 // moved too often: stays for a while
	removing Flags = 1 << 7 // being removed or copied: refreshing it would be lost
)

func newMeta(seen, since frame.Tick, moves uint8, f Flags) uint64 {
	return uint64(seen)<<32 | uint64(since&0xffff)<<16 | uint64(moves)<<8 | uint64(f)
}

func seenOf(m uint64) frame.Tick { return frame.Tick(m >> 32) }
func movesOf(m uint64) uint8     { return uint8(m >> 8) }
func flagsOf(m uint64) Flags     { return Flags(m) }

// inWindow reports whether the moves of m are counted since less than window
// ticks. Only 16 bits of the start are kept; Sweep forgets older moves in time.
func inWindow(m uint64, now frame.Tick, window uint16) bool {
	return uint16(now)-uint16(m>>16) < window
}

// ageOf returns the ticks from seen to now, 0 if a worker's clock ran ahead.
func ageOf(seen, now frame.Tick) frame.Tick {
	if age := now - seen; int32(age) > 0 {
		return age
	}
	return 0
}
