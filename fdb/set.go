package fdb

import (
	"errors"
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
)

// Flags say what kind of entry [Table.Set] makes.
type Flags uint8

// Flags. Without Control an entry is static: learning never moves it.
const (
	Static   Flags = 0
	Control  Flags = 1 << iota >> 1 // of a control plane: gives way to learning on a Dest without a peer
	Sticky                          // a Control entry that does not (RFC 7432, section 15.2)
	Filter                          // frames to or from the MAC are dropped, whatever the Dest
	Anycast                         // with Dest 0: others use the MAC too, and frames from it may come from a tunnel
	Override                        // Set only: let a Control entry replace a static one, or one learned locally
)

// Errors of [Table.Set], to be tested with [errors.Is].
var (
	ErrZeroMAC = errors.New("fdb: the zero MAC cannot have an entry")
	ErrLocal   = errors.New("fdb: MAC is learned on a local port")
	ErrStatic  = errors.New("fdb: MAC has a static entry")
	ErrNoDest  = errors.New("fdb: there is no such port or peer")
)

// Set adds or replaces a static or control entry. These do not age and count
// towards no limit, and Set tells no events. A group MAC is allowed. Set waits
// for the lock, and makes the table larger when it has to. Where the table knows what is
// there ([Config].Has), as that of a segment does, a Dest that is not is [ErrNoDest].
//
// A Control entry replaces one that was learned at a Dest without a peer
// ([ErrLocal]), or a static one ([ErrStatic]), only with Override.
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
	} else if t.used >= len(a.slots)/4*3 {
		t.rebuild(t.fitting())
		a = t.arr.Load()
	}
	i, _ := t.spot(a, u)
	f &^= Override | frozen | going
	t.put(a, i, u, newVal(d, t.gen(d, pinned), pinned), newMeta(seen, 0, 0, f))
	return nil
}

// Delete removes an entry of any kind, without an event, and reports whether
// there was one. It waits for the lock.
func (t *Table) Delete(mac frame.MAC) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.arr.Load()
	i, v, ok := a.find(mac.Uint64())
	if !ok || mac.IsZero() {
		return false
	}
	was := t.live(v)
	t.remove(a, i, v)
	return was
}
