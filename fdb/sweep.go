package fdb

import "github.com/vxswitch/vxswitch/frame"

// maxSweep is the largest number of slots for one Sweep.
const maxSweep = 4096

// mustSweep is the number of flushes and kills after which a round is due. After 2^15 of them a dead
// entry would be live again.
const mustSweep = 1 << 14

// Sweep checks the next n slots, at most 4096 and not beyond the end of the table, and returns their
// number. It removes dead entries, and learned ones that were not seen for the ageing time. A
// table that evicts removes entries beyond its share, while the limit of all tables is exceeded.
// Sweep also enlarges a crowded table, and shrinks a nearly empty one after a round.
//
// It scans without the lock, and takes it to remove single entries and to resize the table.
// Meanwhile look-ups go on, and Learn returns Busy for new MACs.
//
// Call it often enough for a round in a fraction of the ageing time.
func (t *Table) Sweep(now frame.Tick, n int) int {
	t.hk.Lock()
	defer t.hk.Unlock()
	t.shedShare()
	if t.crowded.Load() {
		t.mu.Lock()
		if t.used >= len(t.arr.Load().slots)/4*3 {
			t.rebuild(t.fitting())
		}
		t.crowded.Store(false)
		t.mu.Unlock()
	}
	a := t.arr.Load()
	if a != t.on {
		t.on, t.hand = a, 0
	}
	if t.hand == 0 {
		t.mu.Lock() // no writer still stores an older generation behind the hand
		t.starts = t.bumps()
		t.mu.Unlock()
	}
	n = max(0, min(n, maxSweep, len(a.slots)-t.hand))
	for range n {
		t.look(a, uint64(t.hand), now)
		t.hand++
	}
	if t.hand == len(a.slots) {
		t.finish(a)
	}
	return n
}

// look removes the entry in slot i if it is dead or aged.
func (t *Table) look(a *array, i uint64, now frame.Tick) {
	v := a.slots[i].val.Load()
	if v == 0 {
		return
	}
	m := a.meta[i].Load()
	dead := !t.live(v)
	aged := classOf(v) == learned && t.aged(m, now)
	if !dead && !aged {
		window := t.cfg.MoveWindow
		if flagsOf(m)&frozen != 0 {
			window = t.cfg.FreezeTime
		}
		if movesOf(m) != 0 && !inWindow(m, now, window) {
			a.meta[i].CompareAndSwap(m, m&^(0xff<<8|uint64(frozen)))
		}
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.arr.Load() != a || a.slots[i].val.Load() != v {
		return
	}
	mac := a.slots[i].key.Load() >> 16
	if !dead { // later refreshes fail; an earlier one keeps the entry
		if m = a.meta[i].Load(); !t.aged(m, now) || !a.meta[i].CompareAndSwap(m, m|uint64(removing)) {
			return
		}
	}
	dead = dead || !t.live(v)
	t.remove(a, i, v)
	if !dead {
		t.counters.aged.Add(1)
		t.notify(frame.EventMACAged, mac, destOf(v), 0, false)
	}
}

// finish ends a round.
func (t *Table) finish(a *array) {
	t.hand = 0
	t.swept.Store(t.starts)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reap()
	t.rounds.Add(1)
	if size := len(a.slots); size > max(maxDirect, t.least) && (t.count[learned]+t.count[pinned])*16 < size && t.arr.Load() == a {
		t.rebuild(size / 4)
	}
}

// Rounds returns the number of rounds that Sweep has completed.
func (t *Table) Rounds() uint64 { return t.rounds.Load() }

// MustSweep reports whether the table cannot wait for its turn: it is crowded, or there were so many
// flushes and kills since the last round that dead entries could become live again. Then call
// Sweep until it is false. It is cheap enough for every table at every tick.
func (t *Table) MustSweep() bool {
	return t.crowded.Load() || t.bumps()-t.swept.Load() >= mustSweep
}

// Grow makes the table large enough for n entries, and keeps it so. It waits for the lock and holds
// it while it copies the entries; look-ups go on.
func (t *Table) Grow(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.least = sizeFor(n); t.least > len(t.arr.Load().slots) {
		t.rebuild(t.least)
	}
}

// fitting returns the size that a crowded table should have: the same if removing dead slots is
// enough, otherwise twice, or four times if it has refused to learn.
func (t *Table) fitting() int {
	t.reap()
	size, n := len(t.arr.Load().slots), t.count[learned]+t.count[pinned]
	switch {
	case t.used >= size/8*7 && n > size/2:
		return size * 4
	case n > fill(size)/6*5:
		return size * 2
	}
	return size
}

// rebuild copies the live entries to a new array and publishes it. The lock is held. A refresh after
// the copy finds the flag removing.
func (t *Table) rebuild(size int) {
	starts := t.bumps()
	t.reap()
	old, a := t.arr.Load(), newArray(size, t.cfg.Evict)
	if old.mark != nil {
		a.mark = make([]mark, size)
	}
	t.used = 0
	for i := range old.slots {
		switch v := old.slots[i].val.Load(); {
		case v == 0:
		case !t.live(v):
			t.forget(old, uint64(i), v)
		case old.links == nil || classOf(v) == pinned:
			t.copySlot(old, a, uint64(i))
		}
	}
	for _, h := range t.rank { // only in tables that evict
		next := h.oldest
		for h.newest, h.oldest = 0, 0; next != 0; {
			i := uint64(next - 1)
			next = old.links[i].newer
			a.push(h, t.copySlot(old, a, i))
		}
	}
	t.arr.Store(a)
	t.swept.Store(starts)
	t.crowded.Store(false)
}

// copySlot copies slot i of old to a, and returns its slot there.
func (t *Table) copySlot(old, a *array, i uint64) uint64 {
	s := &old.slots[i]
	mac, v := s.key.Load()>>16, s.val.Load()
	j, _, _ := a.find(mac)
	a.meta[j].Store(old.meta[i].Or(uint64(removing)))
	a.slots[j].val.Store(v&^stampMask | 1)
	a.slots[j].key.Store(mac<<16 | 1)
	if a.mark != nil {
		a.mark[j] = old.mark[i]
	}
	t.used++
	return j
}
