package control

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
)

// An entry is what a place is to hold, or holds, in a table.
type entry interface {
	same(entry) bool            // as another one, in the same table
	where() any                 // the table
	hold(*tx) error             // takes the peers it names
	set(t *tx, old entry) error // writes it, unless it is there; old is what this Plane wrote there
	clear(*tx)                  // removes it, if it is still there
	peers() []held
}

// tx is one update on its way into the tables.
type tx struct {
	p     *Plane
	again bool // look whether everything is there

	segments map[frame.VNI]*segment // nil: not yet asked for
	vrfs     map[string]*l3.VRF

	touched []place
	fresh   map[place]bool  // what new rows claim: an error there is one of the update
	renewed map[uint64]bool // claims, by seq, of rows that were advertised again
	changes []*change
	routes  []*change // that wait for each other, to be added together
	unused  []held    // peers held for entries that could not be written
	undos   []func()

	lost   *LostError // an entry that could not be written, though its row stays
	losses int
}

// change is one entry that changes.
type change struct {
	at       place
	old, new entry // nil: none
}

func (p *Plane) begin() *tx { return &tx{p: p, fresh: map[place]bool{}, renewed: map[uint64]bool{}} }

func (t *tx) undo(f func()) { t.undos = append(t.undos, f) }

// touch has a place looked at.
func (t *tx) touch(at place) {
	if _, ok := t.fresh[at]; !ok {
		t.fresh[at] = false
		t.touched = append(t.touched, at)
	}
}

// stage makes the rows what they will be.
func (t *tx) stage(owner string, diff []delta) {
	for _, d := range diff {
		t.swap(owner, d.key, d.old, d.new)
		d.old.claims(owner, func(at place, _ claim) { t.touch(at) })
		d.new.claims(owner, func(at place, _ claim) {
			t.touch(at)
			t.fresh[at] = true
		})
		for _, s := range []stored{d.old, d.new} {
			if g, ok := s.row.(Group); ok {
				t.touchUsers(groupPlace{owner, g.VNI, g.Tunnel, g.Name})
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

// sweep forgets places that nobody claims.
func (t *tx) sweep() {
	for _, at := range t.touched {
		if s := t.p.slots[at]; s != nil && len(s.claims) == 0 && s.written == nil {
			delete(t.p.slots, at)
		}
	}
}

// write makes the tables what the rows say: first what comes, from the peers up, then what
// goes, from the routes down. On an error everything is as it was.
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

// layer is the order in which tables stand on each other.
func layer(at place) int {
	switch at.(type) {
	case groupPlace, floodPlace:
		return 0
	case macPlace:
		return 1
	case neighbourPlace:
		return 2
	}
	return 3
}

// plan compares what a place holds with what it is to hold.
func (t *tx) plan(at place) {
	s := t.p.slots[at]
	c := &change{at: at, old: s.written}
	renewed, last := false, ""
	for _, best := range t.p.ranked(s) {
		if _, ok := at.(routePlace); ok && best.owner == last {
			continue // its rows are one route, which there cannot be
		}
		last = best.owner
		e, err := t.entry(at, s, &best, t.renewed[best.seq])
		if err == nil {
			c.new, renewed = e, t.renewed[best.seq]
			break
		}
		t.lose(at, best.owner, err) // it waits, and meanwhile the next one counts
		if layer(at) == 0 {
			break // all rows are one entry, which there cannot be
		}
	}
	switch {
	case c.old == nil && c.new == nil:
	case c.old != nil && c.new != nil && !t.again && !renewed && c.old.same(c.new):
	default:
		t.changes = append(t.changes, c)
	}
}

// entry returns what a place is to hold; nil with an error if it cannot be, and nil without
// one if nobody wants it.
func (t *tx) entry(at place, s *slot, best *claim, renewed bool) (entry, error) {
	static := slices.Contains(t.p.cfg.Static, best.owner)
	switch at := at.(type) {
	case macPlace:
		return t.mac(at, best.says.(location), static, renewed)
	case neighbourPlace:
		return t.neighbour(at, best.says.(neighbour), static, renewed)
	case groupPlace:
		return t.group(at, s)
	case floodPlace:
		return t.flood(at, s)
	case routePlace:
		return t.route(at, s, best.owner)
	}
	return nil, nil
}

// build writes what comes.
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

// failed says what becomes of an error: it ends the update that brought the row. Any other row
// waits for better times.
func (t *tx) failed(c *change, err error) error {
	if t.fresh[c.at] {
		return fmt.Errorf("%v: %w", c.at, err)
	}
	t.lose(c.at, t.p.best(t.p.slots[c.at]).owner, err)
	t.unused = append(t.unused, c.new.peers()...)
	c.new = nil
	return nil
}

// lose notes an entry, or a part of one, that an owner's row has and that cannot be written now.
func (t *tx) lose(at place, owner string, err error) {
	t.losses++
	if t.lost == nil || t.p.rank(owner, t.lost.Owner) < 0 {
		t.lost = &LostError{owner, fmt.Errorf("%v: %w", at, err)}
	}
}
