package fdb

import (
	"errors"
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
)

// Flags select the kind of entry that [Table.Set] makes.
type Flags uint8

// Flags. Without Control an entry is static: learning never moves it.
const (
	Static   Flags = 0
	Control  Flags = 1 << iota >> 1 // of a control plane: may move by learning to a Dest without a peer
	Sticky                          // a Control entry that never moves (RFC 7432, section 15.2)
	Filter                          // frames to or from the MAC are dropped, whatever the Dest
	Anycast                         // with Dest 0: other switches have the MAC too, so frames from it may come from a tunnel
	Override                        // for Set only: a Control entry may replace a static one, or one learned locally
)

// Errors of [Table.Set], to be tested with [errors.Is].
var (
	ErrZeroMAC = errors.New("fdb: the zero MAC cannot have an entry")
	ErrLocal   = errors.New("fdb: MAC is learned on a local port")
	ErrStatic  = errors.New("fdb: MAC has a static entry")
	ErrNoDest  = errors.New("fdb: there is no such port or peer")
)

// Set adds or replaces a static or control entry. Such entries do not age, do not count towards limits, and cause no
// events, except for that of a learned entry in whose place they are. A group MAC is allowed. Set waits for the lock, and enlarges the table if necessary. If [Config].Has is
// set, as in the table of a segment, Set returns [ErrNoDest] for a Dest that does not exist.
//
// A Control entry replaces an entry that was learned at a Dest without a peer, or a static one, only with Override;
// otherwise Set returns [ErrLocal] or [ErrStatic].
func (t *Table) Set(mac frame.MAC, d frame.Dest, f Flags) error {
	if mac.IsZero() {
		return ErrZeroMAC
	}
	if f&Filter != 0 || d == frame.Filter {
		d, f = frame.Filter, f|Filter
	}
	u := mac.Uint64()
	t.mu.Lock()
	defer t.mu.Unlock()
	if d != frame.Filter && t.cfg.Has != nil && !t.cfg.Has(d) {
		return fmt.Errorf("%w: %v", ErrNoDest, d)
	}
	a := t.arr.Load()
	var seen frame.Tick
	if i, v, ok := a.find(u); ok && t.live(v) {
		m := a.meta[i].Load()
		if f&Control != 0 && f&Override == 0 {
			switch {
			case classOf(v) == learned && destOf(v).Peer() == 0:
				return ErrLocal
			case classOf(v) == pinned && flagsOf(m)&Control == 0:
				return ErrStatic
			}
		}
		seen = seenOf(m)
		if classOf(v) == learned {
			t.notify(frame.EventMACDeleted, u, destOf(v), 0, false)
		}
	} else if t.used >= fill(len(a.slots)) {
		t.rebuild(t.fitting())
		a = t.arr.Load()
	}
	i, _ := t.emptySlot(a, u)
	f &^= Override | frozen | removing
	t.put(a, i, u, newVal(d, t.gen(d, pinned), pinned), newMeta(seen, 0, 0, f))
	return nil
}

// Delete removes an entry of any kind, and reports whether there was one. Only a learned one causes an event. It
// waits for the lock.
func (t *Table) Delete(mac frame.MAC) bool {
	return t.DeleteIf(mac, func(Entry) bool { return true })
}

// DeleteIf is Delete if f returns true for the entry. No other change comes between, such as that the host moves. f must
// not call the Table.
func (t *Table) DeleteIf(mac frame.MAC, f func(Entry) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.arr.Load()
	i, v, ok := a.find(mac.Uint64())
	if !ok || mac.IsZero() {
		return false
	}
	was := t.live(v)
	if e, ok := t.entry(a, i); was && ok && !f(e) {
		return false
	}
	t.remove(a, i, v)
	if was && classOf(v) == learned {
		t.notify(frame.EventMACDeleted, mac.Uint64(), destOf(v), 0, false)
	}
	return was
}
