package arp

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// A Claim is what a message says about its sender.
type Claim struct {
	IP    netip.Addr
	MAC   frame.MAC
	Flags Flags      // with Taught, of an advertisement
	Weak  bool       // it does not override another MAC: an advertisement without O (RFC 4861, section 7.2.5)
	From  frame.Dest // where it came from; with a peer, a tunnel

	// Foreign means an address outside the segment's prefixes, or a tunnel of which nothing is learned: Learn
	// updates its entry, but adds one only for an answer to an open question.
	Foreign bool
}

// local reports whether the message came from a local port.
func (c *Claim) local() bool { return c.From.Local() }

// Learn updates the table from a message. It does not wait: a known neighbour costs a read
// lock and, once a tick, a write; a new or moved one tries the lock. Only the answer to an
// open question waits for the lock ([Table.Watch]).
//
// Learn returns Full if a limit keeps out a neighbour that is new, comes from another Dest or
// replaces a control entry; the table stays as it was. A full table makes room for a Dest that
// has fewer neighbours than others, and for answers to open questions: it deletes the least
// recently seen neighbour of the Dest that has the most.
func (t *Table) Learn(c *Claim, now frame.Tick) LearnOutcome {
	t.mu.RLock()
	x := t.look(c, now, false)
	t.mu.RUnlock()
	switch {
	case x.final && x.o == Known:
		return Known
	case !isHost(c.IP) || !c.MAC.IsHost():
		x.o = Invalid
	case !x.final:
		x.o = t.write(c, now, false)
	case t.asked(c.IP):
		x.o = t.write(c, now, true)
	}
	if x.o != Known {
		t.outcomes[x.o].Add(1)
	}
	return x.o
}

// write applies a claim that look could not settle.
func (t *Table) write(c *Claim, now frame.Tick, asked bool) LearnOutcome {
	if !t.mu.TryLock() {
		if asked = asked || t.asked(c.IP); !asked {
			return Busy
		}
		t.mu.Lock()
	}
	o := t.learn(c, now, asked)
	t.mu.Unlock()
	if o == New || o == Moved {
		t.found(c.IP)
	}
	return o
}

// A change is what a claim would do to the table.
type change struct {
	o      LearnOutcome
	final  bool  // nothing to write
	victim int32 // the row that makes room, or -1
}

// look returns what c would change. t.mu is held, for reading at least.
func (t *Table) look(c *Claim, now frame.Tick, asked bool) change {
	i, ok := t.index[c.IP]
	var e *row
	switch {
	case ok:
		if e = t.rows.at(i); t.refuses(&e.Entry, c, now) {
			return change{o: Refused, final: true}
		}
		if e.MAC == c.MAC && (e.Origin == Static || e.Origin == Control && !c.local()) {
			return change{o: Known, final: true}
		}
	case c.Foreign && !asked:
		return change{o: Refused, final: true}
	}
	victim, room := t.room(c.From, e, asked)
	switch {
	case !room:
		return change{o: Full, final: true}
	case !ok:
		return change{o: New, victim: victim}
	case e.MAC != c.MAC || e.Origin == Control:
		return change{o: Moved, victim: victim}
	}
	return change{Known, e.Seen == now && e.State == Reachable && e.From == c.From && (c.Flags&Taught == 0 || e.Flags == c.Flags), victim}
}

// refuses reports whether an entry withstands a claim. A duplicate does until it ages out, or
// for the default ageing time if entries do not age. t.mu is held.
func (t *Table) refuses(e *Entry, c *Claim, now frame.Tick) bool {
	if e.State == Duplicate {
		return t.ageing != never || e.Age(now) < ticks(DefaultAgeing)
	}
	if e.MAC == c.MAC {
		return false
	}
	return c.Weak || e.Origin == Static || e.Origin == Control && c.From.Peer() != 0
}

// learn writes what c changes, and sends the events. t.mu is held.
func (t *Table) learn(c *Claim, now frame.Tick, asked bool) LearnOutcome {
	x := t.look(c, now, asked)
	if x.final {
		return x.o
	}
	if x.victim >= 0 {
		e := t.rows.at(x.victim).Entry
		t.aged.Add(1)
		t.remove(x.victim)
		t.notify(frame.Event{Kind: frame.EventNeighbourAged, IP: e.IP, MAC: e.MAC, Dest: e.From})
	}
	if x.o == New {
		t.add(Entry{IP: c.IP, MAC: c.MAC, Flags: c.Flags, State: Reachable, From: c.From, Seen: now})
		t.notify(frame.Event{Kind: frame.EventNeighbourLearned, IP: c.IP, MAC: c.MAC, Dest: c.From})
		return New
	}
	i := t.index[c.IP]
	e := t.rows.at(i)
	if x.o == Known {
		moved := e.From != c.From
		if t.touch(i, c, now); moved {
			t.notify(frame.Event{Kind: frame.EventNeighbourMoved, IP: c.IP, MAC: c.MAC, OldMAC: c.MAC, Dest: c.From})
		}
		return Known
	}
	ev := frame.Event{Kind: frame.EventNeighbourMoved, IP: c.IP, MAC: c.MAC, OldMAC: e.MAC, Dest: c.From, Pinned: e.Origin == Control}
	if ev.Pinned { // it gives way
		e.Origin, e.From = Snooped, c.From
		t.enter(i)
	}
	duplicate := e.MAC != c.MAC && t.duplicate(&e.Entry, now)
	if duplicate && t.cfg.Freeze {
		e.State, e.Seen = Duplicate, now
		t.show(&e.Entry)
	} else {
		if e.MAC != c.MAC {
			e.MAC, e.Flags = c.MAC, c.Flags
		}
		t.touch(i, c, now)
		t.show(&e.Entry)
		t.notify(ev)
	}
	if duplicate {
		ev.Kind, ev.Pinned = frame.EventNeighbourDuplicate, false
		t.notify(ev)
	}
	if e.State == Duplicate {
		return Refused
	}
	return Moved
}

// touch notes when and where row i was seen. t.mu is held.
func (t *Table) touch(i int32, c *Claim, now frame.Tick) {
	e := t.rows.at(i)
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

// duplicate counts a move and reports whether it reaches DuplicateMoves. t.mu is held.
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
