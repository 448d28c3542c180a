package control

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

// countRoute notes that a row is now in the route of its prefix (1), or no longer (-1).
func (t *tx) countRoute(r *record, by int) {
	if _, prefix := r.place.row.(Prefix); !prefix || len(t.p.routeWatchers) == 0 {
		return
	}
	if t.ups == nil {
		t.ups = map[ownedRow]int{}
	}
	t.ups[ownedRow{r.place.owner.name, r.row()}] += by
}

// tellRoutes calls those who watch routes.
func (t *tx) tellRoutes() {
	owners, add, del := map[string]bool{}, map[string][]Row{}, map[string][]Row{}
	for r, n := range t.ups {
		switch owners[r.owner] = true; {
		case n > 0:
			add[r.owner] = append(add[r.owner], r.row)
		case n < 0:
			del[r.owner] = append(del[r.owner], r.row)
		}
	}
	for f := range t.p.routeWatchers {
		for o := range owners {
			if len(add[o])+len(del[o]) > 0 {
				(*f)(o, add[o], del[o])
			}
		}
	}
}

// count notes that a row is added (1) or removed (-1).
func (t *tx) count(n ref, by int) {
	if len(t.p.watchers) == 0 {
		return
	}
	if t.counts == nil {
		t.counts = map[Row]int{}
	}
	t.counts[t.p.at(n).row()] += by
}

// tell calls the watchers.
func (t *tx) tell(owner string) {
	var add, del []Row
	for r, n := range t.counts {
		switch {
		case n > 0:
			add = append(add, r)
		case n < 0:
			del = append(del, r)
		}
	}
	if len(add)+len(del) == 0 {
		return
	}
	for f := range t.p.watchers {
		(*f)(owner, add, del)
	}
}
