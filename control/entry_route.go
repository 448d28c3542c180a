package control

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/l3"
)

// A routeEntry is what a VRF has for a prefix. The zero value is none.
type routeEntry struct {
	vrf *l3.VRF
	via []l3.NextHop
}

// A routeChange is the change of a route: now are its rows, was is what is written.
type routeChange struct {
	now []ref
	was routeEntry
	set routeEntry
}

// hop returns the next hop of a place, and false for a blackhole.
func (p *place) hop() (h l3.NextHop, ok bool) {
	v := p.row.(Prefix).Via
	h = l3.NextHop{Interface: p.iface, IP: v.IP, MAC: v.MAC, Weight: v.Weight}
	if v.MAC.IsZero() && v.VTEP.IsValid() {
		h.Peer = p.dest.Peer()
	}
	return h, p.iface != nil
}

// routeOf makes a route of sorted rows. A router with two VTEPs is one next hop, with the largest weight of both.
func (t *tx) routeOf(rows []ref) (e routeEntry) {
	for _, n := range rows {
		p := t.p.at(n).place
		e.vrf = p.vrf
		h, ok := p.hop()
		if !ok {
			continue
		}
		if last := len(e.via) - 1; last >= 0 && sameHop(e.via[last], h) {
			e.via[last].Weight = max(e.via[last].Weight, h.Weight)
		} else {
			e.via = append(e.via, h)
		}
	}
	return e
}

// sameHop reports whether two next hops are one, whatever their weights.
func sameHop(a, b l3.NextHop) bool {
	a.Weight = b.Weight
	return a == b
}

func (t *tx) touchRoute(k routeKey) {
	c, first := t.routes.touch(k)
	if !first {
		return
	}
	for n, r := range t.p.routes.all(&t.p.store, k) {
		if r.flags&written != 0 {
			c.now = append(c.now, n)
		}
	}
	c.now = t.sorted(c.now)
	c.was = t.routeOf(c.now)
}

// sorted sorts next hops, so that rows in any order are one route.
func (t *tx) sorted(rows []ref) []ref {
	slices.SortFunc(rows, func(a, b ref) int {
		return compareVia(t.p.at(a).place.row.(Prefix).Via, t.p.at(b).place.row.(Prefix).Via)
	})
	return rows
}

// byPreference returns the rows of a prefix: those with the lowest distance first, and of these those of the first owner.
func (t *tx) byPreference(k routeKey) (rows []ref) {
	equal := true
	for n := range t.p.routes.all(&t.p.store, k) {
		rows = append(rows, n)
		equal = equal && t.distance(n) == t.distance(rows[0])
	}
	if !equal {
		slices.SortStableFunc(rows, func(a, b ref) int { return cmp.Compare(t.distance(a), t.distance(b)) })
	}
	return rows
}

func (t *tx) distance(n ref) uint8 { return t.p.at(n).place.row.(Prefix).Distance }

// chooseRoute makes a route of the next hops of one distance and owner, the first that has one, and reports whether it has
// to be written.
func (t *tx) chooseRoute(k routeKey, c *routeChange) bool {
	rows := t.byPreference(k)
	next := rows[:0]
	for _, n := range rows {
		r := t.p.at(n)
		t.mark(n, false)
		if len(next) > 0 && (r.place.owner != t.p.at(next[0]).place.owner || t.distance(n) != t.distance(next[0])) {
			continue
		}
		ready := t.find
		if v := r.place.row.(Prefix).Via; v.MAC.IsZero() && v.VTEP.IsValid() {
			ready = t.need
		}
		if t.usable(n, ready) {
			next = append(next, n)
		}
	}
	for _, n := range next {
		t.mark(n, true)
	}
	c.now = t.sorted(next)
	c.set = t.routeOf(c.now)
	return len(next) > 0 && (t.again || c.set.vrf != c.was.vrf || !slices.Equal(c.set.via, c.was.via))
}

// addRoutes writes routes, all of a VRF at once if none of them fails.
func (t *tx) addRoutes(keys []routeKey) {
	byVRF := map[*l3.VRF][]l3.Route{}
	for _, k := range keys {
		e := &t.routes.at[k].is.set
		if r, ok := e.vrf.Route(k.prefix); !ok || !slices.Equal(r.Via, e.via) {
			byVRF[e.vrf] = append(byVRF[e.vrf], l3.Route{Prefix: k.prefix, Via: e.via})
		}
	}
	for vrf, routes := range byVRF {
		if vrf.Add(routes...) == nil {
			t.p.stats.Routes += uint64(len(routes))
			delete(byVRF, vrf)
		}
	}
	for _, k := range keys {
		c := &t.routes.at[k].is
		if c.was.vrf != c.set.vrf {
			t.removeRoute(k, c)
		}
		if _, failed := byVRF[c.set.vrf]; failed && !t.addRoute(k, c) {
			continue
		}
		c.was = c.set
	}
}

// addRoute writes one route. If it cannot, rows with wrong next hops fail; they all wait if an interface has
// the prefix itself.
func (t *tx) addRoute(k routeKey, c *routeChange) bool {
	if r, ok := c.set.vrf.Route(k.prefix); ok && slices.Equal(r.Via, c.set.via) {
		return true
	}
	err := c.set.vrf.Add(l3.Route{Prefix: k.prefix, Via: c.set.via})
	if err == nil {
		t.p.stats.Routes++
		return true
	}
	fail := t.fail
	if errors.Is(err, l3.ErrBuiltIn) {
		fail = t.wait
	}
	var wrong []failure
	for _, n := range c.now {
		if err := c.set.vrf.Check(l3.Route{Prefix: k.prefix, Via: t.routeOf([]ref{n}).via}); err != nil {
			wrong = append(wrong, failure{row: n, err: err})
		}
	}
	if len(wrong) == 0 { // an interface has changed meanwhile
		for _, n := range c.now {
			wrong = append(wrong, failure{row: n, err: err})
		}
		fail = t.wait
	}
	for _, f := range wrong {
		fail(f.row, f.err)
	}
	return false
}

// clearRoutes removes what was written, or what is left of it after an interface was closed, all of a VRF at once.
func (t *tx) clearRoutes() {
	gone := map[*l3.VRF][]netip.Prefix{}
	t.routes.backward(func(k routeKey, c *routeChange) {
		if len(c.now) > 0 {
			return
		}
		if vrf := t.takeRoute(k, c); vrf != nil {
			gone[vrf] = append(gone[vrf], k.prefix)
		}
	})
	for vrf, list := range gone {
		vrf.DeleteAll(list...)
	}
}

func (t *tx) removeRoute(k routeKey, c *routeChange) {
	if vrf := t.takeRoute(k, c); vrf != nil {
		vrf.Delete(k.prefix)
	}
}

// takeRoute returns the VRF that a route is to be deleted from, nil if it is not there, or somebody else's.
func (t *tx) takeRoute(k routeKey, c *routeChange) *l3.VRF {
	was := c.was
	c.was = routeEntry{}
	if was.vrf == nil {
		return nil
	}
	r, ok := was.vrf.Route(k.prefix)
	other := func(h l3.NextHop) bool { return !slices.Contains(was.via, h) }
	if !ok || (len(r.Via) == 0) != (len(was.via) == 0) || slices.ContainsFunc(r.Via, other) {
		return nil
	}
	t.p.stats.Routes++
	return was.vrf
}
