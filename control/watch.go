package control

import "slices"

// Watch calls f with all rows there are, once for each owner, and then with those that every Update adds and removes, in
// the order of the Updates: so a control plane knows what others have said, for instance which MACs the configuration
// has on ports, and which routes there are and whose. The prefixes of gateways are not rows: frame.EventGatewayUp tells
// of them. A row that waits counts as one that is there. f is called with the Plane locked: it must not call it,
// nor wait. Watch returns a function that ends the calls.
func (p *Plane) Watch(f func(owner string, add, del []Row)) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, o := range p.owners {
		var rows []Row
		for _, r := range p.of(o) {
			rows = append(rows, r.row())
		}
		f(name, rows, nil)
	}
	w := &f
	p.watchers[w] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watchers, w)
	}
}

// WatchRoutes is Watch for the rows of routes that VRFs have now. Unlike those of Watch, they come and go by themselves as
// well: a row that waits, or that another owner's comes before, is not among them. f is called with the Plane locked.
func (p *Plane) WatchRoutes(f func(owner string, add, del []Row)) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, o := range p.owners {
		var rows []Row
		for _, r := range p.of(o) {
			if _, prefix := r.place.row.(Prefix); prefix && r.flags&written != 0 {
				rows = append(rows, r.row())
			}
		}
		if len(rows) > 0 {
			f(name, rows, nil)
		}
	}
	w := &f
	p.routeWatchers[w] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.routeWatchers, w)
	}
}

// An ownedRow is a row and the name of its owner.
type ownedRow struct {
	owner string
	row   Row
}

// A delta is what has been added and removed since it was empty.
type delta[T comparable] struct{ add, del []T }

func (d *delta[T]) count(x T, added bool) {
	if added {
		d.add = append(d.add, x)
	} else {
		d.del = append(d.del, x)
	}
}

// net leaves out what was both added and removed.
func (d *delta[T]) net() (add, del []T) {
	if len(d.add) == 0 || len(d.del) == 0 {
		return d.add, d.del
	}
	n := map[T]int{}
	for _, x := range d.add {
		n[x]++
	}
	for _, x := range d.del {
		n[x]--
	}
	only := func(sign int) func(T) bool {
		return func(x T) bool {
			if n[x]*sign <= 0 {
				return true
			}
			n[x] -= sign
			return false
		}
	}
	return slices.DeleteFunc(d.add, only(1)), slices.DeleteFunc(d.del, only(-1))
}

// countRoute notes that a row is now in the route of its prefix, or no longer.
func (t *tx) countRoute(r *record, added bool) {
	if _, prefix := r.place.row.(Prefix); prefix && len(t.p.routeWatchers) > 0 {
		t.routed.count(ownedRow{r.place.owner.name, r.row()}, added)
	}
}

// tellRoutes calls those who watch routes.
func (t *tx) tellRoutes() {
	by := map[string]*delta[Row]{}
	sort := func(list []ownedRow, added bool) {
		for _, x := range list {
			if by[x.owner] == nil {
				by[x.owner] = new(delta[Row])
			}
			by[x.owner].count(x.row, added)
		}
	}
	add, del := t.routed.net()
	sort(add, true)
	sort(del, false)
	for f := range t.p.routeWatchers {
		for o, d := range by {
			(*f)(o, d.add, d.del)
		}
	}
}

// tell calls the watchers.
func (t *tx) tell(owner string) {
	add, del := t.rows.net()
	if len(add)+len(del) == 0 {
		return
	}
	for f := range t.p.watchers {
		(*f)(owner, add, del)
	}
}
