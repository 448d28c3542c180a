package fdb

import "github.com/vxswitch/vxswitch/frame"

// SetLimit sets the limit of learned entries as in [Config]. A table that evicts
// shrinks to it at once; another one as entries age.
func (t *Table) SetLimit(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit = limitOf(n)
	t.shed()
}

// SetFlaps sets after how many moves in one tick an event is sent, as in [Config].
func (t *Table) SetFlaps(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flaps = n; n == 0 {
		t.flaps = DefaultFlaps
	}
}

// SetFreeze sets after how many moves a MAC is frozen, as in [Config]. 0 means never. What is
// frozen stays so until its time is over, it ages, is flushed or deleted; see [Entry].
func (t *Table) SetFreeze(moves uint8) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.freeze = moves
}

// SetPerDest sets the limit of learned entries for each Dest of a port in place
// of [Config].PerDest: 0 means no limit, a negative n takes the setting back.
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

// limitAt returns the limit for one Dest, 0 for none.
func (t *Table) limitAt(d frame.Dest) int {
	if n, ok := t.portDest[d.Port()]; ok {
		return n
	}
	return t.perDest
}

// shed evicts what is beyond the limits of a table that evicts.
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

// shedShare evicts what is beyond the table's share while the limit in all is exceeded.
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

// room finds room for one more learned entry at d, and reports whether there is.
// If so, the entry is reserved in the limit in all. moving says that it has been
// counted before, at another Dest.
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

// evict removes the least recently seen entry of a holder. Its share of the limit
// in all goes to the caller.
//
// A refresh that found the table locked could not put its entry in order. Such an
// entry at the end was seen later than the one before it, and is put first; a few
// are enough, for the one found then is old, if not the oldest.
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
	gone := !t.live(v) // flushed in this moment: nothing to tell
	t.leave(a, i, v)
	t.clear(a, i)
	if !gone {
		t.counters.evicted.Add(1)
		t.notify(frame.EventMACEvicted, mac, destOf(v), 0, false)
	}
}
