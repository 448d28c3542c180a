package control

import (
	"errors"
	"fmt"
	"iter"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
)

// A macEntry is what an FDB has for a MAC. The zero value is none.
type macEntry struct {
	table *fdb.Table
	dest  frame.Dest
	flags fdb.Flags
}

// A macChange is the change of an entry: now says of whom it is, was what is written.
type macChange struct {
	now claim
	was macEntry
}

// A claim is that of a row to an entry, or of a router behind prefixes.
type claim struct {
	place *place
	row   ref // 0 for a router
}

func (c claim) entry() macEntry {
	if c.place == nil {
		return macEntry{}
	}
	return macEntry{c.place.table, c.place.dest, c.place.flags()}
}

// claims iterates over the claims to a MAC by precedence: the rows of an owner before its routers.
func (p *Plane) claims(k macKey) iter.Seq[claim] {
	return func(yield func(claim) bool) {
		routers := p.routers[k]
		for n, r := range p.macs.all(&p.store, k) {
			for ; len(routers) > 0 && routers[0].owner.before(r.place.owner); routers = routers[1:] {
				if !yield(claim{routers[0], 0}) {
					return
				}
			}
			if !yield(claim{r.place, n}) {
				return
			}
		}
		for _, x := range routers {
			if !yield(claim{x, 0}) {
				return
			}
		}
	}
}

func (t *tx) touchMAC(k macKey) {
	c, first := t.macs.touch(k)
	if !first {
		return
	}
	for x := range t.p.claims(k) {
		if x.row != 0 && t.p.at(x.row).flags&written != 0 || x.row == 0 && x.place.routes {
			c.now, c.was = x, x.entry()
			return
		}
	}
}

// chooseMAC chooses the claim that counts, and reports whether its entry has to be written.
func (t *tx) chooseMAC(k macKey, c *macChange) bool {
	var next claim
	for x := range t.p.claims(k) {
		if x.row == 0 && t.need(x.place) == nil || x.row != 0 && t.usable(x.row, t.need) {
			next = x
			break
		}
	}
	if next != c.now {
		t.markClaim(c.now, false)
		t.markClaim(next, true)
		c.now = next
	}
	return next.place != nil && (t.again || t.advanced(next) || next.entry() != c.was)
}

func (t *tx) markClaim(c claim, on bool) {
	switch {
	case c.row != 0:
		t.mark(c.row, on)
	case c.place != nil:
		t.markRouter(c.place, on)
	}
}

// advanced reports whether a claim replaces that of a host that is here.
func (t *tx) advanced(c claim) bool { return c.row != 0 && t.p.at(c.row).flags&advanced != 0 }

func (t *tx) setMAC(k macKey, c *macChange) {
	if c.now.place == nil {
		return // its row was refused meanwhile
	}
	e := c.now.entry()
	if c.was.table != e.table {
		t.removeMAC(k, c)
	}
	delete(t.p.gave, k)
	switch wrote, err := e.set(k.mac, c.was, t.advanced(c.now)); {
	case errors.Is(err, fdb.ErrLocal), errors.Is(err, fdb.ErrStatic):
		t.p.stats.GivenWay++
		t.p.gave[k] = true
	case errors.Is(err, errOwn) && c.now.row != 0:
		t.fail(c.now.row, fmt.Errorf("MAC.MAC: %v: %w", k.mac, err))
		return
	case err != nil && c.now.row != 0:
		t.fail(c.now.row, err)
		return
	case err != nil:
		if errors.Is(err, errOwn) {
			err = fmt.Errorf("Prefix.Via.MAC: %v: %w", k.mac, err)
		}
		c.now.place.err = err
		t.touchRows(c.now.place)
		return
	case wrote:
		t.p.stats.MACs++
	}
	c.was = e
}

// set writes an entry, if it is not there. It replaces that of a local host only if the row was advertised
// again, and a static one only if that is what was written before.
func (e macEntry) set(mac frame.MAC, before macEntry, again bool) (wrote bool, err error) {
	was, had := e.table.Get(mac)
	if had && e.is(was) {
		return false, nil
	}
	if own(was, had) {
		return false, errOwn
	}
	err = e.table.Set(mac, e.dest, e.flags)
	again = again || e.flags&(fdb.Sticky|fdb.Filter) != 0 || was.Dest == e.dest
	if errors.Is(err, fdb.ErrLocal) && again || errors.Is(err, fdb.ErrStatic) && before.is(was) {
		err = e.table.Set(mac, e.dest, e.flags|fdb.Override)
	}
	return err == nil, err
}

// errOwn is the error of rows for a MAC of the switch itself, which stays. They wait until the MAC is no longer its own, and
// new ones are refused.
var errOwn error = mistake{errors.New("is a MAC of the switch itself")}

// own reports whether an entry is a MAC of the switch itself.
func own(e fdb.Entry, ok bool) bool { return ok && e.Dest == 0 && e.Origin == fdb.OriginStatic }

// is reports whether a table has this entry.
func (e macEntry) is(was fdb.Entry) bool {
	return e.table != nil && was.Dest == e.dest && was.Flags == e.flags && was.Origin != fdb.OriginLearned
}

func (t *tx) clearMAC(k macKey, c *macChange) {
	if c.now.place == nil {
		t.removeMAC(k, c)
	}
}

// removeMAC removes what was written, if it is still there.
func (t *tx) removeMAC(k macKey, c *macChange) {
	if delete(t.p.gave, k); c.was.table != nil {
		if c.was.table.DeleteIf(k.mac, c.was.is) {
			t.p.stats.MACs++
		}
		c.was = macEntry{}
	}
}
