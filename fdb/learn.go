package fdb

import "github.com/vxswitch/vxswitch/frame"

// Outcome is the result of [Table.Learn]. Frames with Refused, Own and Filtered should be dropped. Frozen is up to
// the caller. All others should be forwarded.
type Outcome uint8

// Outcomes.
const (
	Known    Outcome = iota // known at this Dest
	New                     // learned
	Moved                   // moved here from elsewhere; it may have been a control entry that is not sticky
	Kept                    // stays elsewhere: a control entry, because the frame came from a tunnel; or a MAC that moves too often in one tick
	Refused                 // stays elsewhere: a static or sticky entry
	Frozen                  // stays elsewhere: it has moved too often
	Filtered                // a filter entry
	Own                     // the switch's own MAC: a static or control entry with Dest 0
	Full                    // not learned: a limit is reached
	Busy                    // not learned: the table was locked, or has to be swept first
	Invalid                 // not learned: a group or zero MAC, or a Dest of port 0
)

var outcomeNames = [...]string{
	"known", "new", "moved", "kept", "refused", "frozen", "filtered", "own", "full", "busy", "invalid",
}

// String returns the name of the outcome.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "invalid"
}

// Learn records that a frame from mac came in at d. A Dest with a peer is behind a tunnel. Learn never waits. For a
// known MAC, and for a move that an entry refuses, it takes no lock, does not allocate, and writes at most once a
// tick.
//
// A new MAC and a move need the lock. If the lock is taken, Learn returns Busy, and the next frame tries again.
//
// A MAC that moves too often stays where it was before it began to move: frozen ([Config].Freeze), or until the end of
// the tick ([Config].Flaps).
//
// At a limit Learn returns Full. A table that evicts instead replaces the entry that was not seen for the longest time:
// one of d, if d has reached its limit, or else one of the Dest with the most entries. So a host that sends from a
// million MACs does not push out the MACs of others.
func (t *Table) Learn(mac frame.MAC, d frame.Dest, now frame.Tick) Outcome {
	return t.LearnUint64(mac.Uint64(), d, now)
}

// LearnUint64 is [Table.Learn] for a MAC as [frame.MAC.Uint64] has it.
func (t *Table) LearnUint64(u uint64, d frame.Dest, now frame.Tick) Outcome {
	a := t.arr.Load()
	mask := uint64(len(a.slots) - 1)
	for i := a.home(u) & mask; ; i = (i + 1) & mask {
		s := &a.slots[i]
		k := s.key.Load()
		if k>>16 == 0 { // first: the zero MAC is nowhere
			return t.learnSlow(a, u, d, now)
		}
		if k>>16 == u {
			v := s.val.Load()
			if (v^k)&stampMask == 0 && destOf(v) == d && d != frame.Filter && u>>40&1 == 0 && // a group has static entries alone
				ageOf(seenOf(a.meta[i].Load()), now) == 0 && (t.bumps() == t.swept.Load() || t.current(v)) {
				return Known
			}
			return t.learnSlow(a, u, d, now)
		}
	}
}

// learnSlow is what is left of Learn for a MAC that is not known at d, or was not seen in this tick.
func (t *Table) learnSlow(a *array, u uint64, d frame.Dest, now frame.Tick) Outcome {
	if u == 0 || u>>40&1 != 0 {
		return Invalid
	}
	if i, v, ok := a.find(u); ok && t.live(v) {
		m := a.meta[i].Load()
		switch o := t.claim(v, m, d); o {
		case Known:
			if t.refresh(a, i, m, now) {
				t.reorder(a, i, v)
				return Known
			}
		case Moved:
		default:
			return t.turnDown(o)
		}
	}
	return t.learn(u, d, now)
}

// claim returns the outcome for the entry v, m when its MAC is seen at d.
func (t *Table) claim(v, m uint64, d frame.Dest) Outcome {
	o := claim(v, m, d)
	if o == Refused && t.leads(destOf(v), d) {
		return Kept
	}
	return o
}

// leads reports whether a static entry at one peer of a port also allows frames of another.
func (t *Table) leads(to, d frame.Dest) bool {
	return t.cfg.Leads != nil && to.Port() == d.Port() && to.Peer() != 0 && d.Peer() != 0 && t.cfg.Leads(to, d)
}

// claim returns the outcome for the entry v, m when its MAC is seen at d; Moved means that it may move there. Without
// the lock, the flags in m may be from before or after a concurrent Set.
func claim(v, m uint64, d frame.Dest) Outcome {
	at, f := destOf(v), flagsOf(m)
	switch {
	case at == frame.Filter:
		return Filtered
	case at == d:
		return Known
	case classOf(v) == learned && f&frozen == 0:
		return Moved
	case classOf(v) == learned:
		return Frozen
	case at == 0 && f&Anycast != 0 && d.Peer() != 0:
		return Kept
	case at == 0:
		return Own
	case f&Control == 0 || f&Sticky != 0:
		return Refused
	case d.Peer() != 0:
		return Kept
	}
	return Moved
}

func (t *Table) turnDown(o Outcome) Outcome {
	if o == Refused || o == Frozen {
		t.counters.refused.Add(1)
	}
	return o
}

// refresh records that the entry was seen now. It returns false if the entry is being removed or copied to another
// array.
func (t *Table) refresh(a *array, i, m uint64, now frame.Tick) bool {
	for ageOf(seenOf(m), now) > 0 {
		if flagsOf(m)&removing != 0 {
			return false
		}
		if a.meta[i].CompareAndSwap(m, uint64(now)<<32|m&(1<<32-1)) {
			break
		}
		m = a.meta[i].Load()
	}
	return true
}

// reorder makes slot i the newest of its holder, unless the table is locked.
func (t *Table) reorder(a *array, i, v uint64) {
	if a.links == nil || classOf(v) != learned || !t.mu.TryLock() {
		return
	}
	if h := t.holders[holderKey{destOf(v), learned}]; h != nil && h.gen == genOf(v) &&
		t.arr.Load() == a && a.slots[i].val.Load() == v {
		a.unlink(h, i)
		a.push(h, i)
	}
	t.mu.Unlock()
}

// learn is Learn with the lock.
func (t *Table) learn(mac uint64, d frame.Dest, now frame.Tick) Outcome {
	if d.Port() == 0 {
		return Invalid
	}
	if !t.mu.TryLock() {
		t.counters.busy.Add(1)
		return Busy
	}
	defer t.mu.Unlock()
	a := t.arr.Load()
	i, v, ok := a.find(mac)
	if !ok || !t.live(v) {
		return t.add(a, mac, d, now)
	}
	m := a.meta[i].Load()
	switch o := t.claim(v, m, d); o {
	case Known:
		t.refresh(a, i, m, now)
		if h := t.holders[holderKey{d, learned}]; a.links != nil && classOf(v) == learned && h != nil && h.gen == genOf(v) {
			a.unlink(h, i)
			a.push(h, i)
		}
		return Known
	case Moved:
		return t.move(a, i, v, d, now)
	default:
		return t.turnDown(o)
	}
}

// add learns a MAC that is not in the table.
func (t *Table) add(a *array, mac uint64, d frame.Dest, now frame.Tick) Outcome {
	if t.used >= fill(len(a.slots)) {
		if len(a.slots) <= maxDirect {
			t.rebuild(t.fitting())
			a = t.arr.Load()
		} else {
			t.crowded.Store(true)
		}
	}
	if _, ok := t.emptySlot(a, mac); !ok {
		t.counters.busy.Add(1)
		return Busy
	}
	if !t.room(d, false) {
		t.counters.full.Add(1)
		return Full
	}
	i, _ := t.emptySlot(a, mac) // room may have evicted
	t.put(a, i, mac, newVal(d, t.gen(d, learned), learned), newMeta(now, now, 0, 0))
	t.counters.learned.Add(1)
	t.notify(frame.EventMACLearned, mac, d, 0, false)
	return New
}

// move moves the entry in slot i to d, or freezes it where it was before it began to move.
func (t *Table) move(a *array, i, v uint64, d frame.Dest, now frame.Tick) Outcome {
	m := a.meta[i].Load()
	since, moves := frame.Tick(m>>16), movesOf(m)
	if moves == 0 || !inWindow(m, now, t.cfg.MoveWindow) {
		since, moves = now, 0
	}
	moves = min(moves, 254) + 1
	k := t.moving(a, i, v, now)
	home, other, to, f := destOf(k.home), d, d, Flags(0)
	if d == home {
		other = destOf(v)
	}
	switch {
	case destOf(v) == home && classOf(v) == pinned:
	case t.freeze != 0 && moves >= t.freeze:
		to, f, since = home, frozen, now
	case t.flaps >= 0 && int(k.moves) > t.flaps:
		to = home
	}
	mac := a.slots[i].key.Load() >> 16
	if to == destOf(v) { // home all the time
		a.meta[i].Store(newMeta(seenOf(m), since, moves, f))
		a.mark[i] = k
		t.reportMoves(mac, home, other, k, f)
		return t.stays(f)
	}
	if !t.room(to, classOf(v) == learned) {
		t.counters.full.Add(1)
		return Full
	}
	a.mark[i] = k
	if !t.leave(a, i, v) && classOf(v) == learned {
		t.gens.total.Add(1) // flushed in this moment, and its share given back
	}
	s := &a.slots[i]
	w := newVal(to, t.gen(to, learned), learned) | v&stampMask
	a.meta[i].Store(newMeta(now, since, moves, f))
	s.val.Store(w)
	t.enter(a, i, w)
	t.gens.changed(t.cfg.VNI, mac)
	t.counters.moved.Add(1)
	t.notify(frame.EventMACMoved, mac, to, destOf(v), classOf(v) == pinned)
	t.reportMoves(mac, home, other, k, f)
	if to != d {
		return t.stays(f)
	}
	return Moved
}

// stays returns the outcome for a MAC that stays where it was.
func (t *Table) stays(f Flags) Outcome {
	if f != frozen {
		return Kept
	}
	return t.turnDown(Frozen)
}

// A mark is the history of an entry that has moved. Its home is where it was, as a val, before the first of the moves
// that followed each other within a window.
type mark struct {
	home  uint64
	last  frame.Tick // move
	moves uint16     // in that tick
}

// moving returns the mark of the entry in slot i, updated for a move now.
func (t *Table) moving(a *array, i, v uint64, now frame.Tick) mark {
	if a.mark == nil {
		a.mark = make([]mark, len(a.slots))
	}
	k := a.mark[i]
	if k.home == 0 || !t.current(k.home) || ageOf(k.last, now) >= frame.Tick(t.cfg.MoveWindow) {
		k = mark{home: v, last: now}
	}
	if k.last != now {
		k.last, k.moves = now, 0
	}
	k.moves += min(1, ^k.moves) // until it is full
	return k
}

// reportMoves reports a MAC that has moved too often, in its window or in this tick.
func (t *Table) reportMoves(mac uint64, home, other frame.Dest, k mark, f Flags) {
	if f == frozen {
		t.counters.frozen.Add(1)
		t.notify(frame.EventMACFrozen, mac, home, other, false)
	}
	if int(k.moves) == t.flaps+1 {
		t.counters.flapped.Add(1)
		t.notify(frame.EventMACFlapping, mac, other, home, false)
	}
}
