package l3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"

	"github.com/vxswitch/vxswitch/frame"
)

// A Route says where packets for a prefix go.
type Route struct {
	Prefix netip.Prefix
	Via    []NextHop // several: each flow takes one; none: packets are dropped
}

// A NextHop is one path of a route:
//
//	Interface and IP     on a link: a router, or the host itself
//	Interface and MAC    a router behind a tunnel, as in symmetric IRB (RFC 9136, section 4.4)
//	Interface and Peer   the far end of a tunnel for IP: a node
//	Interface            an IP port
type NextHop struct {
	Interface *Interface // of the same VRF
	IP        netip.Addr
	MAC       frame.MAC
	Peer      uint16
}

// String returns the fields that are set, for errors.
func (h NextHop) String() string {
	s := fmt.Sprintf("vni %d", h.Interface.cfg.VNI)
	if h.IP.IsValid() {
		s += " via " + h.IP.String()
	}
	if !h.MAC.IsZero() {
		s += " mac " + h.MAC.String()
	}
	if t := h.Interface.cfg.Tunnel; t != nil {
		s += " peer " + t.PeerName(h.Peer)
	}
	return s
}

// routeKind says what a route does.
type routeKind uint8

const (
	via       routeKind = iota
	connected           // to a neighbour
	local               // to the gateway itself
	blackhole           // dropped without an ICMP error
)

// A route is a compiled Route. It is immutable.
type route struct {
	kind     routeKind
	nextHops []nextHop
	self     *Interface // of local and connected
	held     bool       // a blackhole that VRF.Release removes; API calls do not see it
	same     Route
}

// nextHop is a compiled NextHop. seed is its number in the choice of a flow's path.
type nextHop struct {
	out  *Interface
	ip   netip.Addr
	mac  uint64 // 0: the neighbour's
	seed uint64
	to   frame.Dest // of an IP port
}

// ErrBuiltIn is returned by Add for a prefix that an interface has a route for, because of its address.
var ErrBuiltIn = errors.New("belongs to an interface's address")

var errNoInterface = errors.New("next hop: Interface: nil, closed or of another VRF")

// bulk is the number of routes from which Add copies the whole table, instead of the parts that
// change.
const bulk = 256

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
			return fmt.Errorf("l3: VRF %s: route %v: %w", v.name, r.Prefix, err)
		}
		made[k] = x
	}
	if len(routes) >= bulk {
		t = t.Clone()
	}
	for k, r := range routes {
		if len(routes) >= bulk {
			t.Insert(r.Prefix, made[k])
		} else {
			t = t.InsertPersist(r.Prefix, made[k])
		}
	}
	v.routes.Store(t)
	return nil
}

// Check returns what is wrong with a route, as Add does.
func (v *VRF) Check(r Route) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, err := v.make(r, v.routes.Load())
	return err
}

// make checks a route. v.mu is held.
func (v *VRF) make(r Route, t *bart.Table[*route]) (*route, error) {
	if !r.Prefix.IsValid() || r.Prefix != r.Prefix.Masked() || r.Prefix.Addr().Is4In6() {
		return nil, errors.New("must be a prefix without host bits")
	}
	if old, ok := t.Get(r.Prefix); ok && old.self != nil {
		return nil, ErrBuiltIn
	}
	x := &route{kind: via, same: r}
	if len(r.Via) == 0 {
		x.kind = blackhole
	}
	for _, h := range r.Via {
		if err := v.check(h, r.Prefix.Addr().Is4()); err != nil {
			return nil, err
		}
		to := frame.NewDest(h.Interface.cfg.Port.Port(), h.Peer)
		x.nextHops = append(x.nextHops, nextHop{h.Interface, h.IP, h.MAC.Uint64(), v.gateway.nextHopSeed(h), to})
	}
	x.same.Via = slices.Clone(r.Via)
	return x, nil
}

// check returns what is wrong with a next hop. v.mu is held.
func (v *VRF) check(h NextHop, is4 bool) error {
	switch {
	case h.Interface == nil || v.interfaces[h.Interface.cfg.VNI] != h.Interface:
		return errNoInterface
	case h.Interface.cfg.Port != 0:
		if t := h.Interface.cfg.Tunnel; t != nil && t.PeerName(h.Peer) == "" {
			return fmt.Errorf("next hop vni %d: Peer: the tunnel has no peer %d", h.Interface.cfg.VNI, h.Peer)
		} else if t == nil && h.Peer != 0 {
			return fmt.Errorf("next hop %v: Peer: %d: must be 0, because the interface is not a tunnel", h, h.Peer)
		}
		return nil
	case h.Peer != 0:
		return fmt.Errorf("next hop %v: Peer: %d: must be 0, because the interface is not a tunnel", h, h.Peer)
	case !h.MAC.IsZero():
		if h.MAC.IsGroup() {
			return fmt.Errorf("next hop %v: MAC: must be the MAC of one host", h)
		}
		return nil
	case !h.IP.IsValid() || h.IP.Is4() != is4:
		return fmt.Errorf("next hop %v: IP: an address of the family of the prefix is required", h)
	case h.Interface.neighbours == nil:
		return fmt.Errorf("next hop %v: Interface: has no Neighbours to resolve IP", h)
	}
	if err := CheckNextHop(h.Interface.cfg.Addresses, h.IP); err != nil {
		return fmt.Errorf("next hop %v: IP: %v: %w", h, h.IP, err)
	}
	return nil
}

// CheckNextHop returns why ip cannot be a next hop on an interface with addrs.
func CheckNextHop(addrs []netip.Prefix, ip netip.Addr) error {
	for _, p := range addrs {
		if err := hostIn(p, ip); err != nil {
			return err
		}
	}
	return nil
}

// nextHopSeed returns the seed of a next hop, which does not depend on the others.
func (g *Gateway) nextHopSeed(h NextHop) uint64 {
	ip := h.IP.As16()
	return g.seed.Hash320(&[5]uint64{
		binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:]), uint64(h.Interface.cfg.VNI), h.MAC.Uint64(), uint64(h.Peer),
	})
}

// pick chooses a flow's next hop by rendezvous hashing: removing one moves only its own flows.
func (r *route) pick(flow uint64) *nextHop {
	if len(r.nextHops) == 1 {
		return &r.nextHops[0]
	}
	var best uint64
	var h *nextHop
	for i := range r.nextHops {
		x := (flow ^ r.nextHops[i].seed) * 0x9e3779b97f4a7c15
		x = (x ^ x>>32) * 0xd6e8feb86659fd93
		if h == nil || x > best {
			best, h = x, &r.nextHops[i]
		}
	}
	return h
}

// without returns a route without its next hops on an interface: r itself if it has none, nil if
// it has no others.
func (r *route) without(i *Interface) *route {
	gone := func(h nextHop) bool { return h.out == i }
	switch {
	case r.self == i:
		return nil
	case !slices.ContainsFunc(r.nextHops, gone):
		return r
	}
	x := *r
	x.nextHops = slices.DeleteFunc(slices.Clone(r.nextHops), gone)
	x.same.Via = slices.DeleteFunc(slices.Clone(r.same.Via), func(h NextHop) bool { return h.Interface == i })
	if len(x.nextHops) == 0 {
		return nil
	}
	return &x
}

// Delete removes an added route, and reports whether there was one.
func (v *VRF) Delete(p netip.Prefix) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.routes.Load()
	if old, ok := t.Get(p); !ok || old.self != nil || old.held {
		return false
	}
	v.routes.Store(t.DeletePersist(p))
	return true
}

// Route returns the added route of a prefix, and whether there is one.
func (v *VRF) Route(p netip.Prefix) (Route, bool) {
	if r, ok := v.routes.Load().Get(p); ok && r.self == nil && !r.held {
		return r.same, true
	}
	return Route{}, false
}

// Routes returns the added routes in the order of their prefixes.
func (v *VRF) Routes() (list []Route) {
	for _, r := range v.routes.Load().AllSorted() {
		if r.self == nil && !r.held {
			list = append(list, r.same)
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
	v.routes.Store(t)
}
