package fdb

import "github.com/vxswitch/vxswitch/frame"

// SetLimit sets the limit of learned entries as in [Config]. A table that evicts enforces it at
// once, others as entries age.
func (t *Table) SetLimit(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit = limitOf(n)
	t.shed()
}

// SetFlaps sets the number of moves in one tick above which an event is sent, as in [Config].
func (t *Table) SetFlaps(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flaps = n; n == 0 {
		t.flaps = DefaultFlaps
	}
}

// SetFreeze sets the number of moves after which a MAC is frozen, as in [Config]; 0 = never. Frozen
// entries stay frozen: see [Entry].
func (t *Table) SetFreeze(moves uint8) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.freeze = moves
}

// SetPerDest overrides [Config].PerDest for each Dest of a port: 0 = no limit, negative = as in
// Config.
func (t *Table) SetPerDest(port uint16, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n < 0 {
		delete(t.portDest, port)
	} else {
		if t.portDest == nil {
			t.portDest = make(map[uint16]int)
		}
		t.portDest[port] = n
	}
	t.shed()
}

// limitAt returns the limit for one Dest, 0 = none.
func (t *Table) limitAt(d frame.Dest) int {
	if n, ok := t.portDest[d.Port()]; ok {
		return n
	}
	return t.perDest
}

// shed evicts the entries beyond the limits, in a table that evicts.
func (t *Table) shed() {
	if !t.cfg.Evict {
		return
	}
	t.reap()
	for _, h := range t.holders {
		if limit := t.limitAt(h.dest); limit > 0 && h.class == learned {
			for h.n > limit {
				t.evict(h)
				t.gens.give(1)
			}
		}
	}
	for t.count[learned] > t.limit {
		t.evict(t.rank[0])
		t.gens.give(1)
	}
}

// shedShare evicts entries beyond the table's share while the limit of all tables is exceeded.
func (t *Table) shedShare() {
	if !t.cfg.Evict || !t.gens.over() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reap()
	for range maxSweep {
		if t.count[learned] <= t.gens.share() || !t.gens.over() {
			break
		}
		t.evict(t.rank[0])
		t.gens.give(1)
	}
}

// room makes room for one more learned entry at d, and reports whether it could. If so, it has
// reserved the entry in the limit of all tables. With moving, the entry already counts, at
// another Dest.
func (t *Table) room(d frame.Dest, moving bool) bool {
	reserved := moving
	if limit := t.limitAt(d); limit > 0 && t.heldBy(d) >= limit {
		if t.reap(); t.heldBy(d) >= limit {
			if !t.cfg.Evict {
				return false
			}
			t.evict(t.holders[holderKey{d, learned}])
			if moving {
				t.gens.give(1)
			}
			reserved = true
		}
	}
	if !moving && t.count[learned] >= t.limit {
		if t.reap(); t.count[learned] >= t.limit {
			if !t.cfg.Evict {
				return false
			}
			t.evict(t.rank[0])
			reserved = true
		}
	}
	if reserved || t.gens.take() {
		return true
	}
	if t.reap(); t.gens.take() {
		return true
	}
	if t.count[learned] < t.gens.share() {
		t.gens.total.Add(1)
		return true
	}
	if !t.cfg.Evict || t.count[learned] == 0 {
		return false
	}
	t.evict(t.rank[0])
	return true
}

func (t *Table) heldBy(d frame.Dest) int {
	if h := t.holders[holderKey{d, learned}]; h != nil {
		return h.n
	}
	return 0
}

// evict removes the least recently seen entry of a holder. Its reservation in the limit of all
// tables passes to the caller.
//
// An entry that was refreshed while the table was locked is out of order. At the end of the list it
// was seen later than the one before it, and evict moves it to the front. After a few of these,
// the entry at the end is old, if not the oldest.
func (t *Table) evict(h *holder) {
	a := t.arr.Load()
	for range 16 {
		i := uint64(h.oldest - 1)
		newer := a.links[i].newer
		if newer == 0 || seenOf(a.meta[i].Load()) <= seenOf(a.meta[newer-1].Load()) {
			break
		}
		a.unlink(h, i)
		a.push(h, i)
	}
	i := uint64(h.oldest - 1)
	s := &a.slots[i]
	mac, v := s.key.Load()>>16, s.val.Load()
	gone := !t.live(v) // flushed meanwhile: no event
	t.leave(a, i, v)
	t.clear(a, i)
	if !gone {
		t.counters.evicted.Add(1)
		t.notify(frame.EventMACEvicted, mac, destOf(v), 0, false)
	}
}
