package fdb

import "github.com/vxswitch/vxswitch/frame"

// room is the model of the limits: it takes back what the table evicted.
func (m *model) room(d frame.Dest, moving bool) bool {
	limit := func(n, limit int, of func(*row) bool) (refuse bool) {
		if limit == 0 || n < limit {
			return false
		}
		if !m.cfg.Evict || n == 0 {
			return true
		}
		m.evicted(of)
		return false
	}
	before := len(m.rows)
	if limit(m.count(d), m.limitAt(d), func(r *row) bool { return r.dest == d }) {
		return false
	}
	if moving {
		return true
	}
	if limit(m.learned(), m.limit, m.ofTheLargest) {
		return false
	}
	return len(m.rows) < before || !limit(m.learned(), m.budget, m.ofTheLargest)
}

func (m *model) ofTheLargest(r *row) bool {
	most := 0
	for _, r := range m.rows {
		if !r.pinned {
			most = max(most, m.count(r.dest))
		}
	}
	return m.count(r.dest) == most
}

// evicted takes the next event, which must be about an entry that ought to go: one
// of those asked for, and of its Dest none seen earlier.
func (m *model) evicted(ok func(*row) bool) {
	m.t.Helper()
	if len(m.events) == 0 || m.events[0].Kind != frame.EventMACEvicted {
		m.fatalf("nothing evicted: %v", m.events)
	}
	e := m.events[0]
	m.events = m.events[1:]
	r := m.rows[e.MAC]
	if r == nil || r.pinned || r.dest != e.Dest || !ok(r) {
		m.fatalf("evicted %v, row %+v", e, r)
	}
	for mac, o := range m.rows {
		if !o.pinned && o.dest == r.dest && o.seen < r.seen {
			m.fatalf("evicted %v seen %d, but %v was seen %d", e.MAC, r.seen, mac, o.seen)
		}
	}
	delete(m.rows, e.MAC)
	m.stats.Evicted++
}

func (m *model) shed() {
	if !m.cfg.Evict {
		return
	}
	for len(m.events) > 0 {
		m.evicted(func(r *row) bool {
			limit := m.limitAt(r.dest)
			return limit > 0 && m.count(r.dest) > limit || m.learned() > m.limit && m.ofTheLargest(r)
		})
	}
	for _, r := range m.rows {
		if limit := m.limitAt(r.dest); !r.pinned && limit > 0 && m.count(r.dest) > limit {
			m.fatalf("%v holds %d, limit %d", r.dest, m.count(r.dest), limit)
		}
	}
	if m.learned() > m.limit {
		m.fatalf("%d learned, limit %d", m.learned(), m.limit)
	}
}

func (m *model) limitAt(d frame.Dest) int {
	if n, ok := m.portDest[d.Port()]; ok {
		return n
	}
	return m.perDest
}

func (m *model) count(d frame.Dest) (n int) {
	for _, r := range m.rows {
		if !r.pinned && r.dest == d {
			n++
		}
	}
	return n
}

func (m *model) learned() (n int) {
	for _, r := range m.rows {
		if !r.pinned {
			n++
		}
	}
	return n
}

func (m *model) sweep() {
	n := m.byte()
	if got := m.table.Sweep(m.now, n); got > n {
		m.fatalf("Sweep(%d) looked at %d", n, got)
	}
	m.aged()
}

// aged takes back what Sweep has aged.
func (m *model) aged() {
	for len(m.events) > 0 {
		e := m.events[0]
		if e.Kind == frame.EventMACEvicted {
			m.evicted(func(r *row) bool { return m.budget > 0 && m.learned() > m.budget && m.ofTheLargest(r) })
			continue
		}
		m.events = m.events[1:]
		r := m.rows[e.MAC]
		if e.Kind != frame.EventMACAged || r == nil || r.pinned || r.dest != e.Dest ||
			m.ageing == Never || m.now-r.seen < m.ageing {
			m.fatalf("aged %v, row %+v", e, r)
		}
		delete(m.rows, e.MAC)
		m.stats.Aged++
	}
}
