package bgp

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// rules is what the settings and the interface say of routes.
type rules struct {
	cfg      *Config
	networks []netip.Prefix // of the interface of Config.Segment
	own      []netip.Addr   // its addresses
	macs     map[netip.Addr]frame.MAC
	blocks   map[netip.Prefix]bool // what we announce by settings
}

func newRules(c *Config, gateway []netip.Prefix) *rules {
	r := &rules{cfg: c, own: slices.Clone(c.Addresses), macs: map[netip.Addr]frame.MAC{}, blocks: map[netip.Prefix]bool{}}
	for _, p := range gateway {
		r.networks = append(r.networks, p.Masked())
		r.own = append(r.own, p.Addr())
	}
	for _, n := range c.Nodes {
		r.macs[n.Address] = n.MAC
	}
	for _, p := range c.Announce {
		r.blocks[p] = true
	}
	return r
}

// linkLocal are networks that are not routed, beside those of package hostaddr.
var linkLocal = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("::/127")}

// judge returns why a route is not taken, and if it is, its way.
func (r *rules) judge(p netip.Prefix, nextHop netip.Addr) (control.Via, Reason) {
	if why := cmp.Or(r.prefix(p), r.nextHop(p, nextHop)); why != None {
		return control.Via{}, why
	}
	return r.way(p, nextHop)
}

// prefix returns why no route to a prefix is taken.
func (r *rules) prefix(p netip.Prefix) Reason {
	inside := func(q netip.Prefix) bool { return within(p, q) }
	switch {
	case p.Bits() == 0:
		if r.cfg.DefaultRoute {
			return None
		}
		return DefaultRoute
	case hostaddr.Routed(p) != nil || slices.ContainsFunc(linkLocal, inside):
		return NotRouted
	case r.ours(p):
		return OwnBlock
	case slices.ContainsFunc(r.networks, inside) || slices.ContainsFunc(r.cfg.Underlay, inside) || p.IsSingleIP() && slices.Contains(r.own, p.Addr()):
		return UnderlayNetwork
	}
	switch action, ok := match(r.cfg.Import, p); {
	case ok && action == Reject:
		return Filtered
	case !ok && r.cfg.pool(p) == nil:
		return OutsidePools
	}
	return None
}

// ours reports whether a route would take addresses of ours.
func (r *rules) ours(p netip.Prefix) bool {
	if r.blocks[p] {
		return true
	}
	if p.IsSingleIP() && r.cfg.Borrowed {
		return false
	}
	for b := range r.blocks {
		if within(p, b) {
			return true
		}
	}
	return false
}

// nextHop returns why no route to p by a next hop is taken.
func (r *rules) nextHop(p netip.Prefix, a netip.Addr) Reason {
	switch {
	case hostaddr.Neighbour(a) != nil || a.IsLinkLocalUnicast() || a.Is4() != p.Addr().Is4():
		return BadNextHop
	case slices.Contains(r.own, a):
		return OwnNextHop
	case r.cfg.pool(netip.PrefixFrom(a, a.BitLen())) != nil:
		return OverlayNextHop
	}
	return None
}

// way returns how packets to a prefix get to its next hop:
//
//	pool                        next hop on a network of ours    elsewhere
//	never, or none              directly                         by the router
//	ipip, vxlan  cross-subnet   directly                         in the tunnel
//	             always         in the tunnel                    in the tunnel
func (r *rules) way(p netip.Prefix, nextHop netip.Addr) (control.Via, Reason) {
	on := slices.ContainsFunc(r.networks, func(n netip.Prefix) bool { return n.Contains(nextHop) })
	pool := r.cfg.pool(p)
	if p.Bits() == 0 || pool == nil || pool.Encapsulation == Never || pool.Mode == CrossSubnet && on {
		return r.direct(nextHop, on)
	}
	via := control.Via{VNI: pool.Segment, VTEP: netip.AddrPortFrom(nextHop, 0), Tunnel: pool.Tunnel}
	if pool.Encapsulation == VXLAN {
		if via.MAC = r.macs[nextHop]; via.MAC.IsZero() {
			return via, UnknownNode
		}
	}
	return via, None
}

func (r *rules) direct(nextHop netip.Addr, on bool) (control.Via, Reason) {
	if r.cfg.Segment == 0 {
		return control.Via{}, OffLink
	}
	if !on {
		i := slices.IndexFunc(r.cfg.Routers, func(a netip.Addr) bool { return a.Is4() == nextHop.Is4() })
		if i < 0 {
			return control.Via{}, OffLink
		}
		nextHop = r.cfg.Routers[i]
	}
	return control.Via{VNI: r.cfg.Segment, IP: nextHop}, None
}
