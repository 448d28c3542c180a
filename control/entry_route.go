package control

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
)

// A routeEntry is a route of a VRF.
type routeEntry struct {
	at    routeKey
	vrf   *l3.VRF
	hops  []nextHop
	route l3.Route // with peer numbers
	held  []held
}

// A nextHop is a next hop whose peer may not have a number yet.
type nextHop struct {
	l3.NextHop
	tunnel tunnel
	vni    frame.VNI // on the tunnel
	vtep   netip.AddrPort
}

func (at routeKey) String() string { return fmt.Sprintf("prefix %v vrf %s", at.prefix, at.vrf) }

// route makes a route of the next hops that exist.
func (t *tx) route(at routeKey, s *slot, owner string) (entry, error) {
	vrf, err := t.vrf(at.vrf)
	if err != nil {
		return nil, err
	}
	e := &routeEntry{at: at, vrf: vrf}
	vias, blackhole := s.routed(owner)
	for _, v := range vias {
		h, failed := t.nextHop(vrf, v)
		if failed != nil {
			err = failed
			t.lose(at, owner, err)
			continue
		}
		e.hops = append(e.hops, h)
	}
	if len(e.hops) == 0 && err != nil && !blackhole {
		t.losses-- // the caller counts it
		return nil, err
	}
	return e, nil
}

func (t *tx) nextHop(vrf *l3.VRF, v Via) (nextHop, error) {
	h := nextHop{NextHop: l3.NextHop{Interface: vrf.Interface(v.VNI), IP: v.IP, MAC: v.MAC}}
	if h.Interface == nil {
		return h, fmt.Errorf("Prefix.Via.VNI: %w", ErrNoInterface)
	}
	if err := t.suits(h.Interface, v); err != nil {
		return h, err
	}
	if v.VTEP.IsValid() {
		if err := t.reaches(v.VNI, location{remote: remote{vtep: v.VTEP}, tunnel: v.Tunnel}); err != nil {
			return h, err
		}
	}
	if v.MAC.IsZero() && v.VTEP.IsValid() {
		s, _ := t.segment(v.VNI)
		f, _ := s.vtep(v.Tunnel)
		h.tunnel, h.vni, h.vtep = f.tunnel, f.vni(), v.VTEP
	}
	return h, nil
}

func (e *routeEntry) same(x entry) bool {
	o := x.(*routeEntry)
	return e.vrf == o.vrf && slices.Equal(e.hops, o.hops)
}
func (e *routeEntry) where() any    { return e.vrf }
func (e *routeEntry) peers() []held { return e.held }

func (e *routeEntry) hold(t *tx) error {
	e.route.Prefix = e.at.prefix
	for _, h := range e.hops {
		if h.tunnel != nil {
			r, err := t.hold(h.tunnel, h.vni, h.vtep)
			if r.peer != nil {
				e.held = append(e.held, r)
			}
			if err != nil {
				return err
			}
			h.Peer = r.num
		}
		if !slices.Contains(e.route.Via, h.NextHop) { // a router with two VTEPs is one next hop
			e.route.Via = append(e.route.Via, h.NextHop)
		}
	}
	return nil
}

// there reports whether the VRF has this route.
func (e *routeEntry) there() bool {
	r, ok := e.vrf.Route(e.at.prefix)
	return ok && slices.Equal(r.Via, e.route.Via)
}

func (e *routeEntry) set(t *tx, _ entry) error {
	was, had := e.vrf.Route(e.at.prefix)
	if err := e.vrf.Add(e.route); err != nil {
		return err
	}
	e.written(t, was, had)
	return nil
}

// written counts the route, and records how to undo it.
func (e *routeEntry) written(t *tx, was l3.Route, had bool) {
	t.p.stats.Routes++
	t.undo(func() {
		t.p.stats.Routes++
		if !had || e.vrf.Add(was) != nil {
			e.vrf.Delete(e.at.prefix)
		}
	})
}

// addRoutes writes new routes, all of a VRF at once if none of them fails.
func (t *tx) addRoutes() error {
	byVRF := map[*l3.VRF][]*change{}
	var vrfs []*l3.VRF
	for _, c := range t.routes {
		vrf := c.new.(*routeEntry).vrf
		if byVRF[vrf] == nil {
			vrfs = append(vrfs, vrf)
		}
		byVRF[vrf] = append(byVRF[vrf], c)
	}
	for _, vrf := range vrfs {
		if err := t.addTo(vrf, byVRF[vrf]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) addTo(vrf *l3.VRF, list []*change) error {
	routes := make([]l3.Route, len(list))
	was := make([]l3.Route, len(list))
	had := make([]bool, len(list))
	for i, c := range list {
		routes[i] = c.new.(*routeEntry).route
		was[i], had[i] = vrf.Route(routes[i].Prefix)
	}
	if vrf.Add(routes...) == nil {
		for i, c := range list {
			c.new.(*routeEntry).written(t, was[i], had[i])
		}
		return nil
	}
	for _, c := range list { // one by one, to find the one that fails
		if err := c.new.set(t, nil); err != nil {
			if err := t.failed(c, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear removes the route, or what is left of it after an interface was closed.
func (e *routeEntry) clear(t *tx) {
	r, ok := e.vrf.Route(e.at.prefix)
	other := func(h l3.NextHop) bool { return !slices.Contains(e.route.Via, h) }
	if ok && (len(r.Via) == 0) == (len(e.route.Via) == 0) && !slices.ContainsFunc(r.Via, other) {
		e.vrf.Delete(e.at.prefix)
		t.p.stats.Routes++
	}
}
