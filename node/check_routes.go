package node

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/l3"
)

// bare reports whether a segment carries IP without Ethernet, w being what is around it.
func (g *Segment) bare(w wanted) bool {
	for _, x := range g.in() {
		if t := w.tunnels[x.Tunnel]; t != nil && t.Type == encap.TypeIPIP {
			return true
		}
	}
	if len(g.Members) != 1 {
		return false
	}
	p := w.ports[g.Members[0].Port]
	return p != nil && p.bare()
}

func (k *checker) gateway(key string, g *Segment) {
	w, bare := g.Gateway, g.bare(k.wanted)
	cfg := g.iface(new(arp.Responder), func(frame.Dest, *frame.Frame) bool { return false })
	cfg.VNI = 0 // the segment's, of which all is said there
	if bare {
		cfg.Neighbours, cfg.Port = nil, frame.NewDest(1, 0)
	}
	k.Ask(key, *w, cfg.Check)
	if k.vrfs[w.VRF] == nil {
		k.Fail(key+".vrf", "there is no VRF %q", w.VRF)
	}
	here := strconv.Itoa(int(g.VNI))
	each(k.Report, key+".addresses", w.Addresses, func(at string, p *netip.Prefix) {
		if g.ethernet() {
			k.Ask(at, *p, func() error { return arp.CheckNeighbour(p.Addr(), arp.DefaultAccessMAC) })
		}
		if k.Failed(at) || p.Addr().IsLinkLocalUnicast() {
			return
		}
		own := []netip.Prefix{p.Masked(), netip.PrefixFrom(p.Addr(), p.Addr().BitLen())}
		if last, ok := hostaddr.Broadcast(*p); ok {
			own = append(own, netip.PrefixFrom(p.Masked().Addr(), 32), netip.PrefixFrom(last, 32))
		}
		for _, p := range own {
			if other := k.claim(inVRF(w.VRF, p), here); other != "" && other != here {
				k.Fail(at, "%v is in VNI %s already", p, other)
			}
		}
	})
}

// inVRF names a prefix in a VRF, for claim.
func inVRF(vrf string, p netip.Prefix) string { return fmt.Sprintf("VRF %q %v", vrf, p) }

func (k *checker) vrf(key string, v *VRF) {
	k.named(key+".name", v.Name, k.vrfs[v.Name] == v)
	seen := map[netip.Prefix]bool{}
	to := func(at string, p netip.Prefix) {
		switch vni := k.claimed[inVRF(v.Name, p)]; {
		case !p.IsValid():
			k.Fail(at, "a prefix is needed")
		case p.Addr().Is4In6():
			k.Fail(at, "%v; allowed is an IPv4 prefix as such", p)
		case p != p.Masked():
			k.Fail(at, "%v has bits beyond its length", p)
		case vni != "":
			k.Fail(at, "%v is the gateway's own in VNI %s", p, vni)
		}
		once(k, at, seen, p)
	}
	each(k.Report, key+".routes", v.Routes, func(at string, r *Route) {
		to(at+".prefix", r.Prefix)
		each(k.Report, at+".via", r.Via, func(at string, h *Hop) { k.hop(at, v.Name, h, r.Prefix) })
	})
	each(k.Report, key+".pools", v.Pools, func(at string, p *Pool) {
		if p.Mode > l3.Never {
			k.Fail(at+".mode", "%d is no mode", p.Mode)
		}
		each(k.Report, at+".subnets", p.Subnets, func(at string, s *netip.Prefix) {
			if !s.IsValid() {
				k.Fail(at, "a prefix is needed")
			} else if *s != s.Masked() {
				k.Fail(at, "%v has bits beyond its length", *s)
			}
		})
		each(k.Report, at+".blocks", p.Blocks, func(at string, b *Block) {
			to(at+".prefix", b.Prefix)
			each(k.Report, at+".nodes", b.Nodes, func(at string, n *BlockNode) { k.node(at, v.Name, p, b.Prefix, n) })
		})
	})
}

func (k *checker) node(key, vrf string, p *Pool, block netip.Prefix, n *BlockNode) {
	if !n.Address.IsValid() {
		k.Fail(key+".address", "an address is needed")
	}
	if n.Tunnel != nil {
		k.hop(key+".tunnel", vrf, n.Tunnel, block)
	}
	if n.Direct != nil {
		k.hop(key+".direct", vrf, n.Direct, block)
	}
	if way, h := n.way(p); h == nil && n.Address.IsValid() {
		k.Fail(key+"."+way, "needed: mode %s goes that way", p.Mode)
	}
}

// way returns which of its ways a node is reached by, nil if it has not got it.
func (n *BlockNode) way(p *Pool) (name string, h *Hop) {
	if p.Mode.Direct(n.Address, p.Subnets) {
		return "direct", n.Direct
	}
	return "tunnel", n.Tunnel
}

func (k *checker) hop(key, vrf string, h *Hop, to netip.Prefix) {
	g := k.segments[h.Segment]
	switch {
	case g == nil:
		k.Fail(key+".segment", "there is no segment of VNI %d", h.Segment)
		return
	case g.Gateway == nil || g.Gateway.VRF != vrf:
		k.Fail(key+".segment", "VRF %q has no gateway in VNI %d", vrf, h.Segment)
		return
	}
	bare, tunnels, router := g.bare(k.wanted), len(g.in()) > 0, !h.MAC.IsZero() || k.Failed(key+".mac")
	var t *Tunnel
	if h.Remote.IsValid() || bare || router {
		t = k.tunnelOf(key, g, h.Tunnel)
	} else if h.Tunnel != "" {
		k.Fail(key+".tunnel", "is for remote")
	}
	if h.VNI != 0 && !router {
		k.Fail(key+".vni", "is for a router behind a tunnel, which has a mac")
	} else if !h.VNI.Valid() {
		k.Fail(key+".vni", "%d; allowed are 1 to %d, and 0 for what the tunnel calls it here", h.VNI, frame.MaxVNI)
	}
	switch {
	case bare && !tunnels:
		if h.IP.IsValid() || h.Remote.IsValid() || router {
			k.Fail(key, "behind an IP port there are neither addresses nor MACs to choose from")
		}
	case bare:
		k.remote(key+".remote", t, h.Remote)
		if h.IP.IsValid() || router {
			k.Fail(key, "a tunnel for IP has nodes only: remote")
		}
	case h.IP.IsValid() && (router || h.Remote.IsValid()):
		k.Fail(key+".ip", "is for a neighbour, mac and remote are for a router behind a tunnel")
	case router:
		switch {
		case h.MAC.IsGroup():
			k.Fail(key+".mac", "%v is not one host's", h.MAC)
		case h.MAC == g.Gateway.MAC || h.MAC == g.Gateway.Own:
			k.Fail(key+".mac", "%v is the gateway's own", h.MAC)
		}
		if !tunnels {
			k.Fail(key+".segment", "VNI %d is in no tunnel", h.Segment)
		}
		k.remote(key+".remote", t, h.Remote)
	case h.Remote.IsValid():
		k.Fail(key+".remote", "needs mac, that of the router behind it")
	case !h.IP.IsValid() || to.IsValid() && h.IP.Is4() != to.Addr().Is4():
		k.Fail(key+".ip", "an address of the family of %v is needed", to)
	default:
		if err := l3.CheckNextHop(g.Gateway.Addresses, h.IP); err != nil {
			k.Fail(key+".ip", "%v %v", h.IP, err)
		}
	}
}
