package arp

import "github.com/vxswitch/vxswitch/frame"

// A row is an entry in the list of its place; at most 64 bytes.
type row struct {
	Entry
	prev, next int32 // snooped rows of the place, in the order they were heard last; -1 = none
}

// A place is where snooped rows were heard: a port, or a peer behind it. Those that hold
// many give way to those that hold few.
type place struct {
	dest        frame.Dest
	n           int
	first, last int32 // the least and the most recently heard
	at          int   // in Table.places
}

// enter puts snooped row i at the end of its place's list. t.mu is held.
func (t *Table) enter(i int32) {
	from := t.rows[i].From
	p := t.held[from]
	if p == nil {
		p = &place{dest: from, first: -1, last: -1, at: len(t.places)}
		t.held[from] = p
		t.places = append(t.places, p)
	}
	t.toEnd(p, i)
	p.n++
	t.snooped++
}

// again puts it there once more: it was heard. t.mu is held.
func (t *Table) again(i int32) {
	e := &t.rows[i]
	p := t.held[e.From]
	t.link(p, e.prev, e.next)
	t.toEnd(p, i)
}

func (t *Table) toEnd(p *place, i int32) {
	e := &t.rows[i]
	e.prev, e.next = p.last, -1
	t.link(p, p.last, i)
	p.last = i
}

// leave takes it out of there. t.mu is held.
func (t *Table) leave(i int32) {
	e := &t.rows[i]
	p := t.held[e.From]
	t.link(p, e.prev, e.next)
	p.n--
	t.snooped--
	if p.n == 0 {
		delete(t.held, p.dest)
		last := t.places[len(t.places)-1]
		t.places[p.at], last.at = last, p.at
		t.places = t.places[:len(t.places)-1]
	}
}

// link makes two rows neighbours in a place's list; -1 is its end.
func (t *Table) link(p *place, a, b int32) {
	if a < 0 {
		p.first = b
	} else {
		t.rows[a].next = b
	}
	if b < 0 {
		p.last = a
	} else {
		t.rows[b].prev = a
	}
}

// moved has a snooped row's neighbours know it by its new number, i. t.mu is held.
func (t *Table) moved(i int32) {
	e := &t.rows[i]
	p := t.held[e.From]
	t.link(p, e.prev, i)
	t.link(p, i, e.next)
}

// room reports whether a snooped row may be from a place: a new one, or e, which may have been
// heard elsewhere, or not at all; and which row has to go for it, or -1. A full table makes
// room at the place that holds the most, if that holds more than the newcomer's would. For an
// answer to an open question there is always room: at the newcomer's own place if that has its
// share, else at that of the most. t.mu is held.
func (t *Table) room(from frame.Dest, e *row, asked bool) (victim int32, ok bool) {
	counted := e != nil && e.Origin == Snooped
	if counted && e.From == from {
		return -1, true
	}
	p, n := t.held[from], 0
	if p != nil {
		n = p.n
	}
	switch {
	case n >= t.cfg.PerDest:
		if !asked {
			return -1, false
		}
		return p.first, true
	case counted || t.snooped < t.cfg.Limit:
		return -1, true
	}
	most := t.places[0]
	for _, x := range t.places[1:] {
		if x.n > most.n || x.n == most.n && x.dest < most.dest {
			most = x
		}
	}
	switch {
	case n+1 < most.n:
		return most.first, true
	case !asked:
		return -1, false
	case n > 0:
		return p.first, true
	}
	return most.first, true
}
