package fdb

import "github.com/vxswitch/vxswitch/frame"

// A holder counts the entries of a Dest and class and, in tables that evict, keeps them in the order
// in which they were seen.
//
// All its entries have its generation. When the generation changes they are dead, and the next use
// of the holder empties it: entries of an older generation are not counted.
type holderKey struct {
	dest  frame.Dest
	class uint64
}

type holder struct {
	holderKey
	gen            uint64
	n              int
	newest, oldest uint32 // slot+1, 0 = none
	rank           int    // index in Table.rank
}

// A link connects the entries of a holder from newest to oldest. Links are beside the slots, so
// that tables that do not evict have none.
type link struct{ newer, older uint32 } // slot+1, 0 = none

// enter counts the new entry in slot i.
func (t *Table) enter(a *array, i, v uint64) {
	p := holderKey{destOf(v), classOf(v)}
	h := t.holders[p]
	if h == nil {
		h = &holder{holderKey: p, gen: genOf(v), rank: len(t.rank)}
		t.holders[p] = h
		if a.links != nil && p.class == learned {
			t.rank = append(t.rank, h)
		}
	}
	if h.gen != genOf(v) {
		t.empty(h)
		h.gen = genOf(v)
	}
	h.n++
	t.count[p.class]++
	if a.links != nil && p.class == learned {
		a.push(h, i)
		t.sift(h)
	}
}

// leave stops counting the entry in slot i, and reports whether it was counted.
func (t *Table) leave(a *array, i, v uint64) bool {
	p := holderKey{destOf(v), classOf(v)}
	h := t.holders[p]
	if h == nil || h.gen != genOf(v) {
		return false
	}
	if a.links != nil && p.class == learned {
		a.unlink(h, i)
	}
	h.n--
	t.count[p.class]--
	t.settle(h)
	return true
}

// forget is leave for an entry that is removed for good.
func (t *Table) forget(a *array, i, v uint64) {
	if t.leave(a, i, v) && classOf(v) == learned {
		t.gens.give(1)
	}
}

// empty stops counting the entries of a holder, which are dead.
func (t *Table) empty(h *holder) {
	t.count[h.class] -= h.n
	if h.class == learned {
		t.gens.give(h.n)
	}
	h.n, h.newest, h.oldest = 0, 0, 0
}

// reap empties the holders of old generations, if there can be any.
func (t *Table) reap() {
	now := t.bumps()
	if now == t.reaped {
		return
	}
	t.reaped = now
	for _, h := range t.holders {
		if h.gen != t.gen(h.dest, h.class) {
			t.empty(h)
			t.settle(h)
		}
	}
}

// settle moves a holder that has lost entries to its rank, or deletes it.
func (t *Table) settle(h *holder) {
	ranked := t.cfg.Evict && h.class == learned
	if ranked {
		t.sift(h)
	}
	if h.n > 0 {
		return
	}
	delete(t.holders, h.holderKey)
	if ranked {
		last := len(t.rank) - 1
		moved := t.rank[last]
		t.rank[h.rank], moved.rank = moved, h.rank
		t.rank[last], t.rank = nil, t.rank[:last]
		if moved != h {
			t.sift(moved)
		}
	}
}

// sift moves a holder up or down the heap, in which none has more entries than its parent.
func (t *Table) sift(h *holder) {
	r := t.rank
	swap := func(i, j int) {
		r[i], r[j] = r[j], r[i]
		r[i].rank, r[j].rank = i, j
	}
	for h.rank > 0 && r[(h.rank-1)/2].n < h.n {
		swap(h.rank, (h.rank-1)/2)
	}
	for {
		most := h.rank
		for c := 2*h.rank + 1; c <= 2*h.rank+2 && c < len(r); c++ {
			if r[c].n > r[most].n {
				most = c
			}
		}
		if most == h.rank {
			return
		}
		swap(h.rank, most)
	}
}

// push makes slot i the newest of a holder.
func (a *array) push(h *holder, i uint64) {
	n := uint32(i) + 1
	a.links[i] = link{older: h.newest}
	if h.newest != 0 {
		a.links[h.newest-1].newer = n
	} else {
		h.oldest = n
	}
	h.newest = n
}

// unlink removes slot i from the order of its holder.
func (a *array) unlink(h *holder, i uint64) {
	l := a.links[i]
	if l.newer != 0 {
		a.links[l.newer-1].older = l.older
	} else {
		h.newest = l.older
	}
	if l.older != 0 {
		a.links[l.older-1].newer = l.newer
	} else {
		h.oldest = l.newer
	}
}
