package fdb

import (
	"iter"

	"github.com/vxswitch/vxswitch/frame"
)

// Origin is the source of an entry.
type Origin uint8

// Origins.
const (
	OriginLearned Origin = iota // by a frame
	OriginStatic                // by Set
	OriginControl               // by Set with Control
)

// String returns "learned", "static" or "control".
func (o Origin) String() string {
	switch o {
	case OriginLearned:
		return "learned"
	case OriginStatic:
		return "static"
	case OriginControl:
		return "control"
	}
	return "invalid"
}

// Entry is one row of a table, as it was when it was read.
type Entry struct {
	MAC    frame.MAC
	Dest   frame.Dest
	Origin Origin
	Flags  Flags      // of Set
	Frozen bool       // moved too often, and stays for Config.FreezeTime, or until it ages, is flushed or deleted
	Moves  uint8      // in the present window of moves
	Seen   frame.Tick // when a frame from MAC last came in at Dest; 0 if none did
}

// Age returns the ticks since the MAC was last seen.
func (e Entry) Age(now frame.Tick) frame.Tick { return ageOf(e.Seen, now) }

// Get returns the entry of a MAC. It takes no lock.
func (t *Table) Get(mac frame.MAC) (Entry, bool) {
	a := t.arr.Load()
	i, _, ok := a.find(mac.Uint64())
	if !ok {
		return Entry{}, false
	}
	e, ok := t.entry(a, i)
	return e, ok && e.MAC == mac
}

// All returns the entries, in no order and without a lock. Entries that are added, removed or
// moved meanwhile may be missing or old. No MAC is returned twice.
func (t *Table) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		a := t.arr.Load()
		for i := range a.slots {
			if e, ok := t.entry(a, uint64(i)); ok && !yield(e) {
				return
			}
		}
	}
}

// entry reads slot i until its words belong together.
func (t *Table) entry(a *array, i uint64) (Entry, bool) {
	for s := &a.slots[i]; ; {
		k, v := s.key.Load(), s.val.Load()
		if (v^k)&stampMask != 0 || k>>16 == 0 || !t.live(v) {
			return Entry{}, false
		}
		m := a.meta[i].Load()
		if s.val.Load() != v || s.key.Load() != k {
			continue
		}
		e := Entry{MAC: frame.MACFrom(k >> 16), Dest: destOf(v), Flags: flagsOf(m) &^ (frozen | removing),
			Frozen: flagsOf(m)&frozen != 0, Moves: movesOf(m), Seen: seenOf(m)}
		switch {
		case classOf(v) == learned:
		case e.Flags&Control != 0:
			e.Origin = OriginControl
		default:
			e.Origin = OriginStatic
		}
		return e, true
	}
}

// Len returns the number of entries. It waits for the lock.
func (t *Table) Len() int {
	s := t.Stats()
	return s.Entries
}
