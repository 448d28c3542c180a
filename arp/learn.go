package arp

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// A Claim is what a message says of its sender.
type Claim struct {
	IP    netip.Addr
	MAC   frame.MAC
	Flags Flags      // with Taught, those of an advertisement
	Weak  bool       // it does not override another MAC: an advertisement without O (RFC 4861, section 7.2.5)
	From  frame.Dest // where it came from; with a peer, out of a tunnel
}

// Learn notes that a neighbour was heard. It does not wait: one that is known as it is
// costs a read lock and, once a tick, a write; for one that is new or has moved the lock
// is tried.
//
// Where a limit is reached the outcome is Full: of a neighbour that is new there, and of one
// that comes from another Dest, or was set. What was known of it stays as it is.
func (t *Table) Learn(c *Claim, now frame.Tick) Outcome {
	o := t.hear(c, now)
	if o != Known {
		t.outcomes[o].Add(1)
	}
	return o
}

func (t *Table) hear(c *Claim, now frame.Tick) Outcome {
	if !isHost(c.IP) || !isMAC(c.MAC) {
		return Invalid
	}
	if o, sure := t.unchanged(c, now); sure {
		return o
	}
	if !t.mu.TryLock() {
		return Busy
	}
	o, events := t.learn(c, now)
	t.mu.Unlock()
	for _, e := range events {
		if e.Kind != frame.EventOverflow {
			t.notify(e)
		}
	}
	return o
}

// unchanged looks, under the read lock, whether there is anything to write.
func (t *Table) unchanged(c *Claim, now frame.Tick) (o Outcome, sure bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i, ok := t.index[c.IP]
	if !ok {
		return Full, !t.room(c.From, nil)
	}
	e := &t.rows[i]
	switch {
	case t.refuses(e, c):
		return Refused, e.State != Duplicate || e.Seen == now
	case e.MAC == c.MAC && e.Origin != Snooped:
		return Known, true
	case !t.room(c.From, e):
		return Full, true
	case e.MAC != c.MAC:
		return Moved, false
	}
	return Known, e.Seen == now && e.State != Probing && e.From == c.From && (c.Flags&Taught == 0 || e.Flags == c.Flags)
}

// room reports whether a snooped row may be from a place: a new one, or e, which may have
// been heard elsewhere, or not at all. t.mu is held.
func (t *Table) room(from frame.Dest, e *Entry) bool {
	counted := e != nil && e.Origin == Snooped
	if counted && e.From == from {
		return true
	}
	return (counted || t.snooped < t.cfg.Limit) && (t.cfg.PerDest == 0 || t.held[from] < t.cfg.PerDest)
}

// refuses reports whether an entry stands against a claim to another MAC. t.mu is held.
func (t *Table) refuses(e *Entry, c *Claim) bool {
	if e.State == Duplicate {
		return true
	}
	if e.MAC == c.MAC {
		return false
	}
	return c.Weak || e.Origin == Static || e.Origin == Control && c.From.Peer() != 0
}

// learn writes what is new. t.mu is held. The events are to be told of without it; those
// of kind EventOverflow stand for none.
func (t *Table) learn(c *Claim, now frame.Tick) (o Outcome, events [2]frame.Event) {
	i, ok := t.index[c.IP]
	if !ok {
		if !t.room(c.From, nil) {
			return Full, events
		}
		t.add(Entry{IP: c.IP, MAC: c.MAC, Flags: c.Flags, State: Reachable, From: c.From, Seen: now})
		events[0] = frame.Event{Kind: frame.EventNeighbourLearned, IP: c.IP, MAC: c.MAC, Dest: c.From}
		return New, events
	}
	e := &t.rows[i]
	if t.refuses(e, c) {
		if e.State == Duplicate {
			e.Seen = now // not silent yet
		}
		return Refused, events
	}
	if e.MAC == c.MAC && e.Origin != Snooped {
		return Known, events
	}
	if !t.room(c.From, e) {
		return Full, events
	}
	if e.MAC == c.MAC {
		t.heard(e, c, now)
		return Known, events
	}
	if e.Origin != Snooped { // a control entry gives way
		e.Origin, e.From = Snooped, c.From
		t.hold(c.From, 1)
	}
	events[0] = frame.Event{Kind: frame.EventNeighbourMoved, IP: c.IP, MAC: c.MAC, OldMAC: e.MAC, Dest: c.From}
	if t.duplicate(e, now) {
		events[1] = frame.Event{Kind: frame.EventNeighbourDuplicate, IP: c.IP, MAC: c.MAC, OldMAC: e.MAC, Dest: c.From}
		if t.cfg.Freeze {
			e.State, e.Seen = Duplicate, now
			t.show(e)
			events[0] = frame.Event{}
			return Refused, events
		}
	}
	e.MAC, e.Flags = c.MAC, c.Flags
	t.heard(e, c, now)
	t.show(e)
	return Moved, events
}

// heard notes when and where. t.mu is held.
func (t *Table) heard(e *Entry, c *Claim, now frame.Tick) {
	if e.From != c.From {
		t.hold(e.From, -1)
		t.hold(c.From, 1)
		e.From = c.From
		t.show(e)
	}
	if c.Flags&Taught != 0 {
		e.Flags = c.Flags
	}
	e.Seen, e.State = now, Reachable
}

// duplicate counts a move and reports whether it is one too many. t.mu is held.
func (t *Table) duplicate(e *Entry, now frame.Tick) bool {
	if e.Moves == 0 || now-e.since >= t.window {
		e.Moves, e.since = 0, now
	}
	if e.Moves++; t.cfg.DuplicateMoves < 0 || e.Moves < t.cfg.DuplicateMoves {
		return false
	}
	e.Moves = 0
	t.duplicates.Add(1)
	return true
}
