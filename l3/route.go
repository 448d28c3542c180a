package l3

import (
	"errors"
	"fmt"
	"hash/maphash"
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"
)

// A Route says where packets for a prefix go.
type Route struct {
	Prefix netip.Prefix
	Via    []NextHop // several: each flow takes one; none: packets are dropped
}

// routeKind says what a route does.
type routeKind uint8

const (
	via       routeKind = iota
	connected           // to a neighbour
	local               // to the gateway itself
	blackhole           // dropped without an ICMP error
)

// A route is what becomes of packets for all prefixes with the same next hops. It is immutable, but for what v.mu protects.
type route struct {
	kind     routeKind
	one      *nextHop // the only one
	paths    []path
	weighted bool       // the weights differ
	self     *Interface // of local and connected
	held     bool       // a blackhole that VRF.Release removes; API calls do not see it
	same     []NextHop  // as they were given

	// Under VRF.mu.
	uses int    // prefixes that were added with it
	key  uint64 // in VRF.made
}

// ErrBuiltIn is returned by Add for a prefix that an interface has a route for, because of its address.
var ErrBuiltIn = errors.New("belongs to an interface's address")

var errNoInterface = errors.New("next hop: Interface: nil, closed or of another VRF")

// Add adds routes, or replaces those with the same prefixes, under traffic. All take effect at
// once, or none if one of them is invalid.
func (v *VRF) Add(routes ...Route) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.routes.Load()
	made := make([]*route, len(routes))
	for k, r := range routes {
		x, err := v.make(r, t)
		if err != nil {
			for _, x := range made[:k] {
				v.drop(x)
			}
			return fmt.Errorf("l3: VRF %s: route %v: %w", v.name, r.Prefix, err)
		}
		made[k] = x
	}
	var add bart.Table[*route] // the parts of t that change are copied once for all of them
	for k, r := range routes {
		old, ok := add.Get(r.Prefix)
		if !ok {
			old, _ = t.Get(r.Prefix)
		}
		v.drop(old)
		add.Insert(r.Prefix, made[k])
	}
	v.publish(t.UnionPersist(&add))
	return nil
}

// Check returns what is wrong with a route, as Add does.
func (v *VRF) Check(r Route) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	x, err := v.make(r, v.routes.Load())
	v.drop(x)
	return err
}

// make returns the route for a prefix, which drop gives back. v.mu is held.
func (v *VRF) make(r Route, t *bart.Table[*route]) (*route, error) {
	if !r.Prefix.IsValid() || r.Prefix != r.Prefix.Masked() || r.Prefix.Addr().Is4In6() {
		return nil, errors.New("must be a prefix without host bits")
	}
	if old, ok := t.Get(r.Prefix); ok && old.self != nil {
		return nil, ErrBuiltIn
	}
	for _, h := range r.Via {
		if err := v.check(h, r.Prefix); err != nil {
			return nil, err
		}
	}
	key := hashHops(r.Via)
	x := v.made[key]
	if x == nil || !slices.Equal(x.same, r.Via) {
		x = &route{kind: via, same: slices.Clone(r.Via), key: key}
		for _, h := range r.Via {
			x.paths = append(x.paths, path{v.nextHops.use(h, func() *nextHop { return v.compile(h) }), max(h.Weight, 1)})
		}
		x.seal()
		v.made[key] = x
	}
	x.uses++
	return x, nil
}

// drop says that a prefix has another route, or none. Built-in and held ones are of no interest. v.mu is held.
func (v *VRF) drop(r *route) {
	if r == nil || r.uses == 0 {
		return
	}
	if r.uses--; r.uses > 0 {
		return
	}
	v.nextHops.release(r)
	if v.made[r.key] == r {
		delete(v.made, r.key)
	}
}

var hopSeed = maphash.MakeSeed()

func hashHops(list []NextHop) uint64 {
	var h maphash.Hash
	h.SetSeed(hopSeed)
	for _, x := range list {
		maphash.WriteComparable(&h, x)
	}
	return h.Sum64()
}

// seal completes a route whose paths are known.
func (r *route) seal() {
	r.one, r.weighted = nil, false
	switch len(r.paths) {
	case 0:
		r.kind = blackhole
	case 1:
		r.one = r.paths[0].hop
	}
	for _, p := range r.paths {
		r.weighted = r.weighted || p.weight != r.paths[0].weight
	}
}

// without returns a route without its next hops on an interface: r itself if it has none, nil if
// it has no others. v.mu is held.
func (v *VRF) without(r *route, i *Interface) *route {
	gone := func(p path) bool { return p.hop.out == i }
	switch {
	case r.self == i:
		return nil
	case !slices.ContainsFunc(r.paths, gone):
		return r
	}
	if v.made[r.key] == r {
		delete(v.made, r.key)
	}
	x := *r
	x.paths = slices.DeleteFunc(slices.Clone(r.paths), gone)
	x.same = slices.DeleteFunc(slices.Clone(r.same), func(h NextHop) bool { return h.Interface == i })
	if len(x.paths) == 0 {
		return nil
	}
	x.seal()
	x.key = hashHops(x.same)
	if v.made[x.key] == nil {
		v.made[x.key] = &x
	}
	return &x
}

// Delete removes the added route of a prefix, and reports whether there was one.
func (v *VRF) Delete(p netip.Prefix) bool { return v.DeleteAll(p) == 1 }

// DeleteAll removes the added routes of prefixes at once, and returns how many there were.
func (v *VRF) DeleteAll(list ...netip.Prefix) (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.routes.Load()
	var gone bart.Table[*route]
	for _, p := range list {
		if r, ok := t.Get(p); ok && r.self == nil && !r.held {
			gone.Insert(p, r)
		}
	}
	if gone.Size() == 0 {
		return 0
	}
	t = t.UnionPersist(&gone) // copies all that leads to them, once, so that they can be deleted in place
	for p, r := range gone.All() {
		t.Delete(p)
		v.drop(r)
	}
	v.publish(t)
	return gone.Size()
}

// Route returns the added route of a prefix, and whether there is one.
func (v *VRF) Route(p netip.Prefix) (Route, bool) {
	if r, ok := v.routes.Load().Get(p); ok && r.self == nil && !r.held {
		return Route{p, r.same}, true
	}
	return Route{}, false
}

// Routes returns the added routes in the order of their prefixes.
func (v *VRF) Routes() (list []Route) {
	for p, r := range v.routes.Load().AllSorted() {
		if r.self == nil && !r.held {
			list = append(list, Route{p, r.same})
		}
	}
	return list
}

// Release deletes the blackholes of Interface.Hold that no other route has replaced.
func (v *VRF) Release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.routes.Load()
	for _, p := range v.held {
		if r, ok := t.Get(p); ok && r.held {
			t = t.DeletePersist(p)
		}
	}
	v.held = nil
	v.publish(t)
}
