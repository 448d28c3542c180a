// Package hello finds out which neighbours can be talked to, without clock, wire or I/O: each end says hello every 5 s with the number
// of its life, and with that it has heard from the other end. A neighbour is up when it has heard of our life, and down when it has a new
// one, or has said nothing for 15 s.
package hello

import (
	"net/netip"
	"slices"
	"time"
)

const (
	Every = 5 * time.Second
	Dead  = 3 * Every
)

// A Hello is what both ends say.
type Hello struct {
	Life  uint64 // of the sender, not 0
	Heard uint64 // of the receiver, 0 = nothing was heard
	Seq   uint64 // higher in each of a life: one that was overtaken says what is no longer so
}

// A Change is a neighbour that came up, or went down.
type Change struct {
	Addr netip.Addr
	Mesh bool
	Up   bool
}

// A Send is a Hello to a neighbour.
type Send struct {
	To netip.Addr
	Hello
}

// A Table has the neighbours of a VTEP. Times are since any one moment, and never go back.
type Table struct {
	life       uint64
	seq        uint64
	neighbours map[netip.Addr]*neighbour
	sorted     []netip.Addr
	changes    []Change
}

type neighbour struct {
	mesh  bool
	life  uint64 // its own, as heard last; 0 = nothing was heard
	seq   uint64 // likewise
	up    bool
	heard time.Duration
	next  time.Duration
	since time.Duration
}

// Status is what is known of a neighbour.
type Status struct {
	Addr  netip.Addr
	Mesh  bool
	Up    bool
	Since time.Duration
}

// New returns a table without neighbours, of a life that differs from the former ones.
func New(life uint64) *Table {
	return &Table{life: life, neighbours: map[netip.Addr]*neighbour{}}
}

// Set says which neighbours there are, and whether each is of the mesh.
func (t *Table) Set(now time.Duration, want map[netip.Addr]bool) {
	for a, n := range t.neighbours {
		if mesh, ok := want[a]; !ok || mesh != n.mesh {
			t.down(now, a, n)
			delete(t.neighbours, a)
		}
	}
	for a, mesh := range want {
		if t.neighbours[a] == nil {
			t.neighbours[a] = &neighbour{mesh: mesh, next: now, since: now}
		}
	}
	t.sorted = t.sorted[:0]
	for a := range t.neighbours {
		t.sorted = append(t.sorted, a)
	}
	slices.SortFunc(t.sorted, netip.Addr.Compare)
}

func (t *Table) down(now time.Duration, a netip.Addr, n *neighbour) {
	if n.up {
		n.up, n.since = false, now
		t.changes = append(t.changes, Change{a, n.mesh, false})
	}
}

// Receive takes a Hello, and returns the answer if there is to be one at once. It reports whether it is of a neighbour.
func (t *Table) Receive(now time.Duration, from netip.Addr, h Hello) (answer []Send, ok bool) {
	n := t.neighbours[from]
	if n == nil || h.Life == 0 {
		return nil, false
	}
	if h.Life == n.life && h.Seq <= n.seq {
		return nil, true
	}
	n.heard, n.seq = now, h.Seq
	if h.Life != n.life {
		t.down(now, from, n)
		n.life = h.Life
		answer = t.say(now, from, n)
	}
	switch up := h.Heard == t.life; {
	case up && !n.up:
		n.up, n.since = true, now
		t.changes = append(t.changes, Change{from, n.mesh, true})
	case !up:
		if t.down(now, from, n); len(answer) == 0 { // it has not heard us, or has begun anew
			answer = t.say(now, from, n)
		}
	}
	return answer, true
}

func (t *Table) say(now time.Duration, to netip.Addr, n *neighbour) []Send {
	n.next = now + Every
	t.seq++
	return []Send{{to, Hello{t.life, n.life, t.seq}}}
}

// Poll returns what is to be sent now. It is called every second.
func (t *Table) Poll(now time.Duration) (out []Send) {
	for _, a := range t.sorted {
		n := t.neighbours[a]
		if n.life != 0 && now-n.heard >= Dead {
			t.down(now, a, n)
			n.life = 0
		}
		if now >= n.next {
			out = append(out, t.say(now, a, n)...)
		}
	}
	return out
}

// Changes returns what has changed since it was called last, in order.
func (t *Table) Changes() []Change {
	c := t.changes
	t.changes = nil
	return c
}

// Status returns the neighbours, by address.
func (t *Table) Status() (list []Status) {
	for _, a := range t.sorted {
		n := t.neighbours[a]
		list = append(list, Status{a, n.mesh, n.up, n.since})
	}
	return list
}
