package control

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
)

// An entry is the content of a table for a key, now or after the update.
type entry interface {
	same(entry) bool            // equals another one, in the same table
	where() any                 // the table
	hold(*tx) error             // takes references to its peers
	set(t *tx, old entry) error // writes it, if it is not there; old is what this Plane wrote before
	clear(*tx)                  // removes it, if it is still there
	peers() []held
}

// A tx is one update of the tables.
type tx struct {
	p     *Plane
	again bool // compare with the tables, not with what was written

	segments map[frame.VNI]*segment // nil until needed
	vrfs     map[string]*l3.VRF

	touched []entryKey
	fresh   map[entryKey]bool // true for keys of new rows: an error there fails the update
	renewed map[uint64]bool   // by seq: rows that were advertised again
	changes []*change
	routes  []*change // to be added together
	unused  []held    // peers held for entries that could not be written
	undos   []func()

	lost   *LostError // an entry that could not be written, though its row stays
	losses int
}

// A change is the change of one entry.
type change struct {
	at       entryKey
	old, new entry // nil = none
}

func (p *Plane) begin() *tx { return &tx{p: p, fresh: map[entryKey]bool{}, renewed: map[uint64]bool{}} }

func (t *tx) undo(f func()) { t.undos = append(t.undos, f) }

// touch makes write compare the entry of a key.
func (t *tx) touch(at entryKey) {
	if _, ok := t.fresh[at]; !ok {
		t.fresh[at] = false
		t.touched = append(t.touched, at)
	}
}

// stage changes the rows.
func (t *tx) stage(owner string, diff []delta) {
	for _, d := range diff {
		t.swap(owner, d.key, d.old, d.new)
		d.old.claims(owner, func(at entryKey, _ claim) { t.touch(at) })
		d.new.claims(owner, func(at entryKey, _ claim) {
			t.touch(at)
			t.fresh[at] = true
		})
		for _, s := range []stored{d.old, d.new} {
			if g, ok := s.row.(Group); ok {
				t.touchUsers(groupKey{owner, g.VNI, g.Tunnel, g.Name})
			}
		}
		t.renewed[d.new.seq] = d.renewed
	}
}

// unstage undoes stage.
func (t *tx) unstage(owner string, diff []delta) {
	for _, d := range diff {
		t.swap(owner, d.key, d.new, d.old)
	}
	t.sweep()
}

func (t *tx) swap(owner string, key Row, old, new stored) {
	p := t.p
	old.claims(owner, p.unclaim)
	new.claims(owner, p.claim)
	p.use(owner, key, old, new)
	rows := p.owners[owner]
	if rows == nil {
		rows = map[Row]stored{}
		p.owners[owner] = rows
	}
	if new.row != nil {
		rows[key] = new
	} else if delete(rows, key); len(rows) == 0 {
		delete(p.owners, owner)
	}
}

// sweep deletes slots without claims.
func (t *tx) sweep() {
	for _, at := range t.touched {
		if s := t.p.slots[at]; s != nil && len(s.claims) == 0 && s.written == nil {
			delete(t.p.slots, at)
		}
	}
}

// write writes the rows to the tables: additions from the peers up, then deletions from the routes
// down. On an error it undoes everything.
func (t *tx) write() error {
	for _, at := range t.touched {
		t.plan(at)
	}
	slices.SortStableFunc(t.changes, func(a, b *change) int { return cmp.Compare(layer(a.at), layer(b.at)) })
	err := t.build()
	if err != nil {
		for _, f := range slices.Backward(t.undos) {
			f()
		}
		return err
	}
	for _, c := range slices.Backward(t.changes) {
		if x, ok := c.new.(*floodEntry); ok {
			x.finish(t, c.old)
		} else if c.old != nil && (c.new == nil || c.old.where() != c.new.where()) {
			c.old.clear(t)
		}
	}
	for _, c := range t.changes {
		if c.old != nil {
			t.unused = append(t.unused, c.old.peers()...)
		}
		t.p.slots[c.at].written = c.new
	}
	for _, r := range t.unused {
		t.release(r)
	}
	t.sweep()
	return nil
}

// layer returns the position of a table in the order of additions.
func layer(at entryKey) int {
	switch at.(type) {
	case groupKey, floodKey:
		return 0
	case macKey:
		return 1
	case neighbourKey:
		return 2
	}
	return 3
}

// plan compares the entry of a key with what the rows say.
func (t *tx) plan(at entryKey) {
	s := t.p.slots[at]
	c := &change{at: at, old: s.written}
	renewed, last := false, ""
	for _, best := range t.p.ranked(s) {
		if _, ok := at.(routeKey); ok && best.owner == last {
			continue // all its rows are one route, which cannot be written
		}
		last = best.owner
		e, err := t.entry(at, s, &best, t.renewed[best.seq])
		if err == nil {
			c.new, renewed = e, t.renewed[best.seq]
			break
		}
		t.lose(at, best.owner, err) // it waits, and the next one counts
		if layer(at) == 0 {
			break // all rows are one entry, which cannot be written
		}
	}
	switch {
	case c.old == nil && c.new == nil:
	case c.old != nil && c.new != nil && !t.again && !renewed && c.old.same(c.new):
	default:
		t.changes = append(t.changes, c)
	}
}

// entry returns the entry for the best claim of a key: nil with an error if it cannot be written, nil
// without one if none is needed.
func (t *tx) entry(at entryKey, s *slot, best *claim, renewed bool) (entry, error) {
	static := slices.Contains(t.p.cfg.Static, best.owner)
	switch at := at.(type) {
	case macKey:
		return t.mac(at, best.says.(location), static, renewed)
	case neighbourKey:
		return t.neighbour(at, best.says.(neighbour), static, renewed)
	case groupKey:
		return t.group(at, s)
	case floodKey:
		return t.flood(at, s)
	case routeKey:
		return t.route(at, s, best.owner)
	}
	return nil, nil
}

// build writes new and changed entries.
func (t *tx) build() error {
	for _, c := range t.changes {
		if c.new != nil {
			if err := c.new.hold(t); err != nil {
				if err := t.failed(c, err); err != nil {
					return err
				}
			}
		}
	}
	for _, c := range t.changes {
		if c.new == nil {
			continue
		}
		old := c.old
		if old != nil && old.where() != c.new.where() {
			old = nil
		}
		if x, ok := c.new.(*routeEntry); ok {
			if !x.there() {
				t.routes = append(t.routes, c)
			}
		} else if err := c.new.set(t, old); err != nil {
			if err := t.failed(c, err); err != nil {
				return err
			}
		}
	}
	return t.addRoutes()
}

// failed returns the error if the update brought the row. Any other row waits for Reapply.
func (t *tx) failed(c *change, err error) error {
	if t.fresh[c.at] {
		return fmt.Errorf("%v: %w", c.at, err)
	}
	t.lose(c.at, t.p.best(t.p.slots[c.at]).owner, err)
	t.unused = append(t.unused, c.new.peers()...)
	c.new = nil
	return nil
}

// lose records that an entry of an owner, or a part of it, cannot be written now.
func (t *tx) lose(at entryKey, owner string, err error) {
	t.losses++
	if t.lost == nil || t.p.rank(owner, t.lost.Owner) < 0 {
		t.lost = &LostError{owner, fmt.Errorf("%v: %w", at, err)}
	}
}
