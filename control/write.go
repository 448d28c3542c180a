package control

import (
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
)

// A tx is one update of the tables.
type tx struct {
	p     *Plane
	n     uint64 // its number
	since uint64 // rows with a higher seq are new
	loose bool   // new rows may wait
	again bool   // compare with the tables, not with what was written

	segments map[frame.VNI]*segment // nil until needed
	vrfs     map[string]*l3.VRF

	*touched

	idle    []*place // perhaps without entries
	unused  []held
	late    []failure // of rows that may not wait
	refused RowErrors
	rows    delta[Row]      // for watchers
	routed  delta[ownedRow] // likewise, in routes
}

// A touched has what an update may have to change. The next update uses its memory again.
type touched struct {
	groups changes[groupKey, struct{}]
	floods changes[frame.VNI, floodChange]
	macs   changes[macKey, macChange]
	ips    changes[ipKey, ipChange]
	routes changes[routeKey, routeChange]
}

func (t *touched) reset() {
	t.groups.reset()
	t.floods.reset()
	t.macs.reset()
	t.ips.reset()
	t.routes.reset()
}

// changes has the keys whose entries may have to change.
type changes[K comparable, C any] struct {
	at    map[K]*change[K, C]
	made  []*change[K, C] // the first n are in use
	n     int
	dirty []*change[K, C]
}

type change[K comparable, C any] struct {
	key   K
	dirty bool // to be compared
	is    C
}

// touch has the entry of a key compared. The first time it returns true: then the caller says what is written.
func (c *changes[K, C]) touch(k K) (is *C, first bool) {
	x, ok := c.at[k]
	if !ok {
		if c.at == nil {
			c.at = map[K]*change[K, C]{}
		}
		if c.n == len(c.made) {
			c.made = append(c.made, new(change[K, C]))
		}
		x = c.made[c.n]
		x.key = k
		c.at[k] = x
		c.n++
	}
	if !x.dirty {
		x.dirty = true
		c.dirty = append(c.dirty, x)
	}
	return &x.is, !ok
}

// reset makes c empty. It keeps memory for as many keys as there were, if that is not more than a large batch has.
func (c *changes[K, C]) reset() {
	if c.n > 8192 || c.n < len(c.made)/4 {
		*c = changes[K, C]{}
		return
	}
	for _, x := range c.made[:c.n] {
		*x = change[K, C]{}
	}
	clear(c.at)
	c.n, c.dirty = 0, nil
}

// each calls f for all keys that have been touched, and for those that it touches.
func (c *changes[K, C]) each(f func(K, *C)) {
	for len(c.dirty) > 0 {
		list := c.dirty
		c.dirty = nil
		for _, x := range list {
			x.dirty = false
			f(x.key, &x.is)
		}
	}
}

// backward calls f for all keys, the last first.
func (c *changes[K, C]) backward(f func(K, *C)) {
	for _, x := range slices.Backward(c.made[:c.n]) {
		f(x.key, &x.is)
	}
}

func (p *Plane) begin() *tx {
	p.updates++
	return &tx{p: p, n: p.updates, since: p.seq, touched: &p.touched}
}

// write makes the tables what the rows say: additions from the peers up, then deletions from the routes down.
// What cannot be written makes room for the next owner's.
func (t *tx) write() {
	for len(t.groups.dirty)+len(t.floods.dirty)+len(t.macs.dirty)+len(t.ips.dirty)+len(t.routes.dirty) > 0 {
		t.groups.each(t.setGroup)
		var macs []macKey
		t.macs.each(func(k macKey, c *macChange) {
			if t.chooseMAC(k, c) {
				macs = append(macs, k)
			}
		})
		t.floods.each(t.setFloods)
		for _, k := range macs {
			t.setMAC(k, &t.macs.at[k].is)
		}
		t.ips.each(t.setIP)
		var routes []routeKey
		t.routes.each(func(k routeKey, c *routeChange) {
			if t.chooseRoute(k, c) {
				routes = append(routes, k)
			}
		})
		t.addRoutes(routes)
		late := t.late
		t.late = nil
		for _, f := range late {
			t.refuse(f.row, f.err)
		}
	}
	t.clearRoutes()
	t.ips.backward(t.clearIP)
	t.macs.backward(t.clearMAC)
	t.floods.backward(t.clearFloods)
	t.tidy()
	t.tellRoutes()
	t.reset()
}

// touch has the entries of a row compared.
func (t *tx) touch(n ref) {
	r := t.p.at(n)
	switch r.place.row.(type) {
	case MAC:
		t.touchMAC(t.p.macs.key(r))
		if r.bits != 0 {
			t.touchIP(t.p.ips.key(r))
		}
	case Group:
		t.groups.touch(t.p.groups.key(r))
	case Flood:
		t.floods.touch(t.p.floods.key(r))
	case Prefix:
		t.touchRoute(t.p.routes.key(r))
		if k, ok := r.place.router(); ok {
			t.touchMAC(k)
		}
	}
}

// insert adds a row.
func (t *tx) insert(o *owner, row Row, flags uint8) ref {
	n := t.p.insert(o.place(row), row)
	t.p.at(n).flags = flags
	if len(t.p.watchers) > 0 {
		t.rows.count(row, true)
	}
	t.touch(n)
	return n
}

// drop removes a row.
func (t *tx) drop(n ref) {
	if len(t.p.watchers) > 0 {
		t.rows.count(t.p.at(n).row(), false)
	}
	t.touch(n)
	p := t.p.at(n).place
	t.mark(n, false)
	delete(t.p.failed, n)
	if p.n == 1 {
		t.markRouter(p, false)
		t.idle = append(t.idle, p)
	}
	t.disown(n)
	t.p.drop(n)
}

// disown removes a row from the changes that it has the entry of.
func (t *tx) disown(n ref) {
	r := t.p.at(n)
	switch r.place.row.(type) {
	case MAC:
		if c := t.macs.at[t.p.macs.key(r)]; c.is.now.row == n {
			c.is.now = claim{}
		}
		if r.bits != 0 {
			if c := t.ips.at[t.p.ips.key(r)]; c.is.now == n {
				c.is.now = 0
			}
		}
	case Prefix:
		if k, ok := r.place.router(); ok && r.place.n == 1 && t.macs.at[k].is.now.place == r.place {
			t.macs.at[k].is.now = claim{}
		}
	}
}

// mark records whether a row is in an FDB or a route.
func (t *tx) mark(n ref, on bool) {
	r := t.p.at(n)
	if r.flags&written != 0 == on {
		return
	}
	r.flags ^= written
	t.countRoute(r, on)
	if _, router := r.place.router(); !router { // those count by the entries of their MACs
		t.use(r.place, on)
	}
}

// markRouter records whether the MAC of a router is in an FDB.
func (t *tx) markRouter(p *place, on bool) {
	if p.routes != on {
		p.routes = on
		t.use(p, on)
	}
}

// A failure is why a row could not be written.
type failure struct {
	row ref
	err error
	n   uint64 // the update
}

// usable reports whether a row can be written, if ready says so of its place.
func (t *tx) usable(n ref, ready func(*place) error) bool {
	if f, ok := t.p.failed[n]; ok {
		if f.n == t.n {
			return false
		}
		delete(t.p.failed, n) // it is tried again, as a whole
		t.touch(n)
	}
	err := ready(t.p.at(n).place)
	if err != nil && t.strict(n, err) {
		t.late = append(t.late, failure{row: n, err: err})
	}
	return err == nil
}

// strict reports whether a row may not wait.
func (t *tx) strict(n ref, err error) bool {
	return t.p.at(n).seq > t.since && (!t.loose || isMistake(err))
}

// fail refuses a row that cannot be written, or has it wait.
func (t *tx) fail(n ref, err error) {
	if t.strict(n, err) {
		t.refuse(n, err)
	} else {
		t.wait(n, err)
	}
}

func (t *tx) refuse(n ref, err error) {
	if r := t.p.at(n); r.place != nil {
		t.refused = append(t.refused, RowError{r.row(), err})
		t.drop(n)
	}
}

// wait has a row wait for something other than its place.
func (t *tx) wait(n ref, err error) {
	t.p.failed[n] = failure{n, err, t.n}
	t.touch(n)
}
