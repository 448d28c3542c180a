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

	// Foreign is an address in none of the segment's prefixes: noted only if it is known
	// already, or asked for.
	Foreign bool
}

// Learn notes that a neighbour was heard. It does not wait: one that is known as it is
// costs a read lock and, once a tick, a write; for one that is new or has moved the lock
// is tried. Only the answer to an open question waits for it ([Table.Watch]).
//
// Where a limit is reached the outcome is Full: of a neighbour that is new there, and of one
// that comes from another Dest, or was set. What was known of it stays as it is. A table that
// is full makes room for a Dest that has less than others, and for answers to open questions,
// by forgetting who was heard least recently at the Dest that has the most.
func (t *Table) Learn(c *Claim, now frame.Tick) LearnOutcome {
	o := t.hear(c, now)
	if o != Known {
		t.outcomes[o].Add(1)
	}
	return o
}

func (t *Table) hear(c *Claim, now frame.Tick) LearnOutcome {
	o, sure := t.unchanged(c, now)
	if sure && o == Known {
		return Known
	}
	if !isHost(c.IP) || !c.MAC.IsHost() {
		return Invalid
	}
	asked := sure && t.asked(c.IP)
	if sure && !asked {
		return o
	}
	return t.write(c, now, asked)
}

// write notes what unchanged was not sure of.
func (t *Table) write(c *Claim, now frame.Tick, asked bool) LearnOutcome {
	if !t.mu.TryLock() {
		if asked = asked || t.asked(c.IP); !asked {
			return Busy
		}
		t.mu.Lock()
	}
	o, events := t.learn(c, now, asked)
	t.mu.Unlock()
	for _, e := range events {
		if e.Kind != frame.EventOverflow {
			t.notify(e)
		}
	}
	return o
}

// unchanged looks, under the read lock, whether there is anything to write, unless c is an
// answer to an open question.
func (t *Table) unchanged(c *Claim, now frame.Tick) (o LearnOutcome, sure bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i, ok := t.index[c.IP]
	if !ok {
		if c.Foreign {
			return Refused, true
		}
		_, ok = t.room(c.From, nil, false)
		return Full, !ok
	}
	e := &t.rows[i]
	if t.refuses(&e.Entry, c, now) {
		return Refused, true
	}
	if e.MAC == c.MAC && e.Origin != Snooped {
		return Known, true
	}
	if e.From != c.From || e.Origin != Snooped {
		if _, ok := t.room(c.From, e, false); !ok {
			return Full, true
		}
	}
	if e.MAC != c.MAC {
		return Moved, false
	}
	return Known, e.Seen == now && e.State == Reachable && e.From == c.From && (c.Flags&Taught == 0 || e.Flags == c.Flags)
}

// refuses reports whether an entry stands against a claim. A duplicate does until it is
// forgotten, or where nothing is, for the usual ageing time: however often it is claimed.
// t.mu is held.
func (t *Table) refuses(e *Entry, c *Claim, now frame.Tick) bool {
	if e.State == Duplicate {
		return t.ageing != never || e.Age(now) < ticks(DefaultAgeing)
	}
	if e.MAC == c.MAC {
		return false
	}
	return c.Weak || e.Origin == Static || e.Origin == Control && c.From.Peer() != 0
}

// learn writes what is new. t.mu is held. The events are to be told of without it; those
// of kind EventOverflow stand for none.
func (t *Table) learn(c *Claim, now frame.Tick, asked bool) (o LearnOutcome, events [3]frame.Event) {
	i, ok := t.index[c.IP]
	var e *row
	switch {
	case ok:
		if e = &t.rows[i]; t.refuses(&e.Entry, c, now) {
			return Refused, events
		}
		if e.MAC == c.MAC && e.Origin != Snooped {
			return Known, events
		}
	case c.Foreign && !asked:
		return Refused, events
	}
	victim, room := t.room(c.From, e, asked)
	if !room {
		return Full, events
	}
	if victim >= 0 {
		x := t.rows[victim].Entry
		events[2] = frame.Event{Kind: frame.EventNeighbourAged, IP: x.IP, MAC: x.MAC, Dest: x.From}
		t.aged.Add(1)
		t.remove(victim)
		if i, ok = t.index[c.IP]; ok { // it may have another number now
			e = &t.rows[i]
		}
	}
	if !ok {
		t.add(Entry{IP: c.IP, MAC: c.MAC, Flags: c.Flags, State: Reachable, From: c.From, Seen: now})
		events[0] = frame.Event{Kind: frame.EventNeighbourLearned, IP: c.IP, MAC: c.MAC, Dest: c.From}
		return New, events
	}
	if e.MAC == c.MAC {
		t.touch(i, c, now)
		return Known, events
	}
	if e.Origin != Snooped { // a control entry gives way
		e.Origin, e.From = Snooped, c.From
		t.enter(i)
	}
	events[0] = frame.Event{Kind: frame.EventNeighbourMoved, IP: c.IP, MAC: c.MAC, OldMAC: e.MAC, Dest: c.From}
	if t.duplicate(&e.Entry, now) {
		events[1] = frame.Event{Kind: frame.EventNeighbourDuplicate, IP: c.IP, MAC: c.MAC, OldMAC: e.MAC, Dest: c.From}
		if t.cfg.Freeze {
			e.State, e.Seen = Duplicate, now
			t.show(&e.Entry)
			events[0] = frame.Event{}
			return Refused, events
		}
	}
	e.MAC, e.Flags = c.MAC, c.Flags
	t.touch(i, c, now)
	t.show(&e.Entry)
	return Moved, events
}

// touch notes when and where. t.mu is held.
func (t *Table) touch(i int32, c *Claim, now frame.Tick) {
	e := &t.rows[i]
	show := e.From != c.From || e.State == Duplicate
	if e.From != c.From {
		t.snooped.Remove(e.at)
		e.From = c.From
		t.enter(i)
	} else if e.Seen != now {
		t.snooped.Renew(e.at)
	}
	if c.Flags&Taught != 0 {
		e.Flags = c.Flags
	}
	if e.Seen, e.State = now, Reachable; show {
		t.show(&e.Entry)
	}
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
