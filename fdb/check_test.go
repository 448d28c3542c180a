package fdb

import (
	"fmt"
	"math"

	"github.com/vxswitch/vxswitch/frame"
)

// compare compares everything there is to see, then looks inside.
func (m *model) compare() {
	m.t.Helper()
	n := 0
	for e := range m.table.All() {
		n++
		if r := m.rows[e.MAC]; r == nil || !m.same(e, e.MAC, r) {
			m.fatalf("All has %+v, row %+v", e, r)
		}
	}
	if n != len(m.rows) || m.table.Len() != n {
		m.fatalf("All has %d, Len says %d, want %d", n, m.table.Len(), len(m.rows))
	}
	if m.gens.Learned() != m.learned() {
		m.fatalf("%d learned in all, want %d", m.gens.Learned(), m.learned())
	}
	s, want := m.table.Stats(), m.stats
	want.Entries, want.LearnedEntries, want.Slots = n, m.learned(), s.Slots
	if s != want {
		m.fatalf("stats %+v, want %+v", s, want)
	}
	m.check()
}

func (m *model) check() {
	m.t.Helper()
	if err := m.table.check(true); err != nil {
		m.fatalf("%v", err)
	}
}

func (m *model) same(e Entry, mac frame.MAC, r *row) bool {
	want := Entry{MAC: mac, Dest: r.dest, Flags: r.flags, Frozen: r.frozen, Moves: uint8(min(r.moves, 255)), Seen: r.seen}
	if r.pinned && r.flags&Control != 0 {
		want.Origin = OriginControl
	} else if r.pinned {
		want.Origin = OriginStatic
	}
	m.thaw(r, e)
	want.Frozen = r.frozen
	if m.now-r.since >= frame.Tick(m.table.cfg.MoveWindow) && !r.frozen {
		e.Moves, want.Moves = 0, 0
	}
	return e == want
}

// check looks for contradictions inside a table that nobody else uses. ordered
// says that nobody did: a refresh beside another writer may miss its order.
func (t *Table) check(ordered bool) error {
	a := t.arr.Load()
	used := 0
	counts := map[holderKey]int{}
	for i := range a.slots {
		s := &a.slots[i]
		k, v := s.key.Load(), s.val.Load()
		if k>>16 == 0 {
			if v != 0 {
				return fmt.Errorf("slot %d: empty with val %x", i, v)
			}
			continue
		}
		used++
		if j, _, ok := a.find(k >> 16); j != uint64(i) || ok != (v != 0) {
			return fmt.Errorf("slot %d: found at %d, %v", i, j, ok)
		}
		if p := (holderKey{destOf(v), classOf(v)}); v != 0 && t.holders[p] != nil && t.holders[p].gen == genOf(v) {
			counts[p]++
		} else if v != 0 && t.live(v) {
			return fmt.Errorf("slot %d: live and not counted", i)
		}
		if v != 0 && flagsOf(a.meta[i].Load())&removing != 0 {
			return fmt.Errorf("slot %d: going", i)
		}
	}
	if used != t.used || used > len(a.slots)/8*7 {
		return fmt.Errorf("%d of %d slots used, counted %d", used, len(a.slots), t.used)
	}
	sums := [2]int{}
	for p, h := range t.holders {
		sums[p.class] += h.n
		if h.n == 0 || counts[p] != h.n {
			return fmt.Errorf("%v holds %d, counted %d", p, counts[p], h.n)
		}
		if a.links == nil || p.class == pinned {
			continue
		}
		last, n, seen := uint32(0), 0, frame.Tick(math.MaxUint32)
		for at := h.newest; at != 0; at = a.links[at-1].older {
			v, m := a.slots[at-1].val.Load(), a.meta[at-1].Load()
			if a.links[at-1].newer != last || destOf(v) != p.dest || ordered && seenOf(m) > seen {
				return fmt.Errorf("%v: order broken at slot %d", p, at-1)
			}
			last, seen = at, seenOf(m)
			n++
		}
		if last != h.oldest || n != h.n || t.rank[h.rank] != h || h.rank > 0 && t.rank[(h.rank-1)/2].n < h.n {
			return fmt.Errorf("%v: %d of %d in order, rank %d", p, n, h.n, h.rank)
		}
	}
	if sums != t.count {
		return fmt.Errorf("counts %v, sums %v", t.count, sums)
	}
	return nil
}
