package fdb

import "sync/atomic"

// Stats are the counters of a table, and its size.
type Stats struct {
	Entries        int `json:"entries"`         // of any kind
	LearnedEntries int `json:"learned_entries"` // those that count towards limits
	Slots          int `json:"slots"`           // memory: 24 bytes a slot, 32 in a table that evicts, 16 more once a MAC has moved

	Learned uint64 `json:"learned"` // MACs learned
	Moved   uint64 `json:"moved"`   // moves followed
	Frozen  uint64 `json:"frozen"`  // MACs that moved too often in MoveWindow
	Flapped uint64 `json:"flapped"` // MACs that moved too often in one tick
	Aged    uint64 `json:"aged"`    // entries not seen for the ageing time
	Evicted uint64 `json:"evicted"` // entries removed to make room
	Refused uint64 `json:"refused"` // frames from a MAC with a static, sticky or frozen entry elsewhere
	Full    uint64 `json:"full"`    // MACs not learned at a limit
	Busy    uint64 `json:"busy"`    // MACs not learned because the table was locked or crowded
}

type counters struct {
	learned, moved, frozen, flapped, aged, evicted, refused, full, busy atomic.Uint64
}

// Stats returns the counters. It waits for the lock.
func (t *Table) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reap()
	c := &t.counters
	return Stats{
		Entries:        t.count[learned] + t.count[pinned],
		LearnedEntries: t.count[learned],
		Slots:          len(t.arr.Load().slots),
		Learned:        c.learned.Load(),
		Moved:          c.moved.Load(),
		Frozen:         c.frozen.Load(),
		Flapped:        c.flapped.Load(),
		Aged:           c.aged.Load(),
		Evicted:        c.evicted.Load(),
		Refused:        c.refused.Load(),
		Full:           c.full.Load(),
		Busy:           c.busy.Load(),
	}
}
