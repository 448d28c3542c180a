package node

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/l3"
)

// bare reports whether a segment carries IP without Ethernet.
func (g *Segment) bare(w wanted) bool {
	for _, x := range g.in() {
		if t := w.tunnels[x.Tunnel]; t != nil && t.Type.Bare() {
			return true
		}
	}
	if len(g.Members) != 1 {
		return false
	}
	p := w.ports[g.Members[0].Port]
	return p != nil && p.bare()
}

func (k *checker) gatewayBFD(key string, g *Segment) {
	k.Ask(key, *g.Gateway.BFD, g.Gateway.BFD.Check)
	switch {
	case g.Gateway.BFD.VNI != 0:
		k.Fail(key+".vni", nil, "is for tunnels")
	case !g.ethernet():
		k.Fail(key, nil, "requires a gateway with a MAC")
	case g.Gateway.Anycast:
		k.Fail(key, nil, "an anycast gateway has no address of its own")
	}
}

// hasMACs reports whether rules of a policy match by MAC.
func hasMACs(p *Policy) bool {
	for r := range p.AllRules() {
		if len(r.SrcMACs)+len(r.DstMACs) > 0 {
			return true
		}
	}
	return false
}

func (k *checker) gateway(key string, g *Segment) {
	w, bare := g.Gateway, g.bare(k.wanted)
	cfg := g.iface(new(arp.Responder), func(frame.Dest, *frame.Frame) bool { return false })
	cfg.VNI = 0 // checked with the segment
	if bare {
		cfg.Neighbours, cfg.Port = nil, frame.NewDest(1, 0)
	}
	k.Ask(key, *w, cfg.Check)
	if w.BFD != nil {
		k.gatewayBFD(key+".bfd", g)
	}
	if k.vrfs[w.VRF] == nil {
		k.Want(key+".vrf", w.VRF, "the name of a VRF")
	}
	k.policyName(key+".policy", w.Policy, g)
	if p := k.policies[w.Policy]; p != nil && hasMACs(p) {
		k.Fail(key+".policy", w.Policy, "has rules with srcMACs or dstMACs, which would match no packet that is routed; must be a policy without")
	}
	here := strconv.Itoa(int(g.VNI))
	each(k.Report, key+".addresses", w.Addresses, func(at string, p *netip.Prefix) {
		if err := hostaddr.Neighbour(p.Addr()); g.ethernet() && err != nil && !k.Failed(at) {
			k.Fail(at, *p, "%v", err)
		}
		if k.Failed(at) || p.Addr().IsLinkLocalUnicast() {
			return
		}
		for _, p := range []netip.Prefix{p.Masked(), netip.PrefixFrom(p.Addr(), p.Addr().BitLen())} {
			if other := k.claim(inVRF(w.VRF, p), here); other != "" && other != here {
				k.Fail(at, p, "is already in VNI %s", other)
			}
		}
		if last, ok := hostaddr.Broadcast(*p); ok {
			k.claim(broadcastIn(w.VRF, netip.PrefixFrom(p.Masked().Addr(), 32)), here)
			k.claim(broadcastIn(w.VRF, netip.PrefixFrom(last, 32)), here)
		}
	})
}

// inVRF names a prefix in a VRF, for claim.
func inVRF(vrf string, p netip.Prefix) string { return fmt.Sprintf("VRF %q %v", vrf, p) }

// broadcastIn is inVRF for the network and broadcast addresses of a prefix, which may be another's address.
func broadcastIn(vrf string, p netip.Prefix) string { return inVRF(vrf, p) + " broadcast" }

func (k *checker) vrf(key string, v *VRF) {
	k.named(key+".name", v.Name, k.vrfs[v.Name] == v)
	seen := map[netip.Prefix]bool{}
	to := func(at string, p netip.Prefix) {
		switch vni := cmp.Or(k.claimed[inVRF(v.Name, p)], k.claimed[broadcastIn(v.Name, p)]); {
		case !p.IsValid():
			k.Fail(at, nil, "a prefix is required")
		case p.Addr().Is4In6():
			k.Want(at, p, "an IPv4 prefix in IPv4 notation")
		case p != p.Masked():
			k.Fail(at, p, "has host bits set; the network is %v", p.Masked())
		case hostaddr.Routed(p) != nil:
			k.Fail(at, p, "%v", hostaddr.Routed(p))
		case vni != "":
			k.Fail(at, p, "is the gateway's network in VNI %s", vni)
		}
		once(k, at, seen, p)
	}
	each(k.Report, key+".routes", v.Routes, func(at string, r *Route) {
		to(at+".prefix", r.Prefix)
		each(k.Report, at+".via", r.Via, func(at string, h *Hop) { k.hop(at, v.Name, h, r.Prefix) })
	})
	each(k.Report, key+".pools", v.Pools, func(at string, p *Pool) {
		if p.Mode > l3.Never {
			k.Want(at+".mode", uint8(p.Mode), "Always, CrossSubnet or Never")
		}
		each(k.Report, at+".subnets", p.Subnets, func(at string, s *netip.Prefix) {
			if !s.IsValid() {
				k.Fail(at, nil, "a prefix is required")
			} else if *s != s.Masked() {
				k.Fail(at, *s, "has host bits set; the network is %v", s.Masked())
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
		k.Fail(key+".address", nil, "an address is required")
	}
	if n.Tunnel != nil {
		k.hop(key+".tunnel", vrf, n.Tunnel, block)
	}
	if n.Direct != nil {
		k.hop(key+".direct", vrf, n.Direct, block)
	}
	if way, h := n.way(p); h == nil && n.Address.IsValid() {
		k.Fail(key+"."+way, nil, "required in mode %s", p.Mode)
	}
}

// way returns the next hop that the mode selects, nil if it is not set, and its key.
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
		k.Want(key+".segment", h.Segment, "the VNI of a segment")
		return
	case g.Gateway == nil || g.Gateway.VRF != vrf:
		k.Fail(key+".segment", h.Segment, "VRF %q has no gateway in this segment", vrf)
		return
	}
	bare, tunnels, router := g.bare(k.wanted), len(g.in()) > 0, !h.MAC.IsZero() || k.Failed(key+".mac")
	var t *Tunnel
	if h.Remote.IsValid() || bare || router {
		t = k.tunnelOf(key, g, h.Tunnel)
	} else if h.Tunnel != "" {
		k.Fail(key+".tunnel", nil, "requires remote")
	}
	if h.VNI != 0 && !router {
		k.Fail(key+".vni", nil, "requires mac, of a router behind the tunnel")
	} else if !h.VNI.Valid() {
		k.Want(key+".vni", h.VNI, "1 to %d, or 0 for the VNI of the tunnel here", frame.MaxVNI)
	}
	switch {
	case bare && !tunnels:
		if h.IP.IsValid() || h.Remote.IsValid() || router {
			k.Fail(key, nil, "an IP port takes neither ip, mac nor remote")
		}
	case bare:
		k.remote(key+".remote", t, h.Remote)
		if h.IP.IsValid() || router {
			k.Fail(key, nil, "a tunnel for IP takes remote only")
		}
	case h.IP.IsValid() && (router || h.Remote.IsValid()):
		k.Fail(key+".ip", nil, "is for a neighbour; mac and remote are for a router behind a tunnel")
	case router:
		switch {
		case h.MAC.IsGroup():
			k.Want(key+".mac", h.MAC, "the MAC of one host")
		case h.MAC == g.Gateway.MAC || h.MAC == g.Gateway.VTEPMAC:
			k.Fail(key+".mac", h.MAC, "is the gateway's MAC")
		}
		if !tunnels {
			k.Fail(key+".segment", h.Segment, "the segment has no tunnel")
		}
		k.remote(key+".remote", t, h.Remote)
	case h.Remote.IsValid():
		k.Fail(key+".remote", nil, "requires mac, of the router behind it")
	case !h.IP.IsValid() || to.IsValid() && h.IP.Is4() != to.Addr().Is4():
		k.Fail(key+".ip", nil, "an address of the family of %v is required", to)
	default:
		if err := g.Gateway.CheckNextHop(to, h.IP); err != nil {
			k.Fail(key+".ip", h.IP, "%v", err)
		}
	}
}
