package bgp

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// rules is what the settings and the interfaces of links say of routes.
type rules struct {
	cfg      *Config
	links    []link // one at least
	linkBy   map[netip.Addr]*link
	differ   bool           // our next hops, by peer
	networks []netip.Prefix // of all links
	own      []netip.Addr   // our addresses there
	macs     map[netip.Addr]frame.MAC
	blocks   map[netip.Prefix]bool // what we announce by settings
	lent     map[netip.Prefix]bool // nil if nobody says
}

// newRules takes the addresses of the gateway of each link.
func newRules(c *Config, gateways ...[]netip.Prefix) *rules {
	r := &rules{cfg: c, own: c.NextHops(), linkBy: map[netip.Addr]*link{}, macs: map[netip.Addr]frame.MAC{}, blocks: map[netip.Prefix]bool{}}
	for i, l := range c.links() {
		x := link{Link: l}
		for j := 0; i < len(gateways) && j < len(gateways[i]); j++ {
			p := gateways[i][j]
			x.networks = append(x.networks, p.Masked())
			r.own = append(r.own, p.Addr())
		}
		r.links, r.networks = append(r.links, x), append(r.networks, x.networks...)
	}
	r.differ = len(r.links) > 1
	for i := range c.Peers {
		p := &c.Peers[i]
		r.linkBy[p.Addr], r.differ = r.linkOf(p), r.differ || p.NextHopSelf
	}
	for _, n := range c.Nodes {
		r.macs[n.Address] = n.MAC
	}
	for _, p := range c.Announce {
		r.blocks[p] = true
	}
	if c.Lent != nil {
		r.lent = map[netip.Prefix]bool{}
	}
	for _, p := range c.Lent {
		r.lent[p] = true
	}
	return r
}

// named reports whether a peer is one by its address, and not by a prefix.
func (r *rules) named(peer netip.Addr) bool { return r.linkBy[peer] != nil }

// linkLocal are networks that are not routed, beside those of package hostaddr.
var linkLocal = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("::/127")}

// judge returns why a route of a peer is not taken, and if it is, its way.
func (r *rules) judge(p netip.Prefix, nextHop, peer netip.Addr) (control.Via, Reason) {
	if why := cmp.Or(r.prefix(p), r.nextHop(p, nextHop)); why != None {
		return control.Via{}, why
	}
	return r.way(p, nextHop, peer)
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
	if p.IsSingleIP() && r.cfg.Borrowed && (r.lent == nil || r.lent[p]) {
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
//	pool                        next hop on a network of a link  elsewhere
//	never, or none              directly                         by the router of the peer's link
//	ipip, vxlan  cross-subnet   directly                         in the tunnel
//	             always         in the tunnel                    in the tunnel
//
// The tunnel is that of the link with the next hop, or else of the peer's.
func (r *rules) way(p netip.Prefix, nextHop, peer netip.Addr) (control.Via, Reason) {
	l := r.link(peer)
	on := l.has(nextHop)
	for i := 0; !on && i < len(r.links); i++ {
		if on = r.links[i].has(nextHop); on {
			l = &r.links[i]
		}
	}
	pool := r.cfg.pool(p)
	if p.Bits() == 0 || pool == nil || pool.Encapsulation == Never || pool.Mode == CrossSubnet && on {
		return l.direct(nextHop, on)
	}
	via := control.Via{VTEP: netip.AddrPortFrom(nextHop, 0)}
	via.VNI, via.Tunnel = l.tunnel(pool)
	if pool.Encapsulation == VXLAN {
		if via.MAC = r.macs[nextHop]; via.MAC.IsZero() {
			return via, UnknownNode
		}
	}
	return via, None
}

func (l *link) direct(nextHop netip.Addr, on bool) (control.Via, Reason) {
	if !on {
		nextHop = engine.OfFamily(l.Routers, nextHop.Is4())
	}
	if l.Segment == 0 || !nextHop.IsValid() {
		return control.Via{}, OffLink
	}
	return control.Via{VNI: l.Segment, IP: nextHop}, None
}
