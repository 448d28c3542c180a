package node

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/l3"
)

// bare reports whether a segment carries IP without Ethernet.
func (k *checker) bare(g *Segment) bool {
	return g.bare(func(name string) *Tunnel { return k.tunnels[name] }, func(name string) *Port { return k.ports[name] })
}

// bare asks by name about tunnels and ports, nil for one that there is not.
func (g *Segment) bare(tunnel func(string) *Tunnel, port func(string) *Port) bool {
	for _, x := range g.in() {
		if t := tunnel(x.Tunnel); t != nil && t.Type == encap.TypeIPIP {
			return true
		}
	}
	if len(g.Members) != 1 {
		return false
	}
	p := port(g.Members[0].Port)
	return p != nil && p.bare()
}

// ownPrefixes returns what an interface has with an address: its network, itself, and the
// first and the last address of the network, which are nobody's.
func ownPrefixes(p netip.Prefix) []netip.Prefix {
	own := []netip.Prefix{p.Masked(), netip.PrefixFrom(p.Addr(), p.Addr().BitLen())}
	if p.Addr().Is4() && p.Bits() < 31 {
		last := p.Masked().Addr().As4()
		for i := p.Bits(); i < 32; i++ {
			last[i/8] |= 0x80 >> (i % 8)
		}
		own = append(own, netip.PrefixFrom(p.Masked().Addr(), 32), netip.PrefixFrom(netip.AddrFrom4(last), 32))
	}
	return own
}

// inVRF is a prefix in a VRF.
type inVRF struct {
	vrf    string
	prefix netip.Prefix
}

func (k *checker) gateways() {
	for i := range k.c.Segments {
		g := &k.c.Segments[i]
		if g.Gateway == nil {
			continue
		}
		key, w, bare := fmt.Sprintf("segments[%d].gateway", i), g.Gateway, k.bare(g)
		if !k.vrfs[w.VRF] {
			k.fail(key+".vrf", "there is no VRF %q", w.VRF)
		}
		switch {
		case bare && (!w.MAC.IsZero() || !w.Own.IsZero() || w.Anycast):
			k.fail(key, "the segment carries IP without Ethernet: there are no MACs")
		case !bare && (w.MAC.IsZero() || w.MAC.IsGroup()):
			k.fail(key+".mac", "the MAC of one host is needed")
		case w.Own.IsGroup():
			k.fail(key+".own", "%v is not one host's", w.Own)
		case w.Anycast && (w.Own.IsZero() || w.Own == w.MAC):
			k.fail(key+".own", "an anycast gateway needs a MAC of its own beside the common one")
		}
		for j, p := range w.Addresses {
			at := fmt.Sprintf("%s.addresses[%d]", key, j)
			if err := hostaddr.In(p, p.Addr()); err != nil {
				k.fail(at, "%v %v", p, err)
				continue
			}
			if a := p.Addr(); a.Is4In6() || a.IsLoopback() || a.Is4() && a.As4()[0] >= 240 {
				k.fail(at, "%v is no address of a host on a network", p)
				continue
			}
			if bare && !p.IsSingleIP() {
				k.fail(at, "%v; where there is no Ethernet only /32 and /128 are allowed", p)
			}
			if p.Addr().IsLinkLocalUnicast() {
				continue
			}
			for _, own := range ownPrefixes(p) {
				if vni, ok := k.nets[inVRF{w.VRF, own}]; ok && vni != g.VNI {
					k.fail(at, "%v is in VNI %d already", own, vni)
				}
				k.nets[inVRF{w.VRF, own}] = g.VNI
			}
		}
		k.gatewaySettings(key, g)
	}
}

func (k *checker) vrf(key string, v *VRF) {
	seen := map[netip.Prefix]bool{}
	once := func(at string, p netip.Prefix) {
		switch {
		case !p.IsValid():
			k.fail(at, "a prefix is needed")
		case p.Addr().Is4In6():
			k.fail(at, "%v; allowed is an IPv4 prefix as such", p)
		case p != p.Masked():
			k.fail(at, "%v has bits beyond its length", p)
		case seen[p]:
			k.fail(at, "%v is there twice", p)
		default:
			if vni, ok := k.nets[inVRF{v.Name, p}]; ok {
				k.fail(at, "%v is the gateway's own in VNI %d", p, vni)
			}
		}
		seen[p] = true
	}
	for i, r := range v.Routes {
		at := fmt.Sprintf("%s.routes[%d]", key, i)
		once(at+".prefix", r.Prefix)
		for j := range r.Via {
			k.hop(fmt.Sprintf("%s.via[%d]", at, j), v.Name, &r.Via[j], r.Prefix)
		}
	}
	for i, p := range v.Pools {
		at := fmt.Sprintf("%s.pools[%d]", key, i)
		for j, s := range p.Subnets {
			if s != s.Masked() {
				k.fail(fmt.Sprintf("%s.subnets[%d]", at, j), "%v has bits beyond its length", s)
			}
		}
		for j, b := range p.Blocks {
			once(fmt.Sprintf("%s.blocks[%d].prefix", at, j), b.Prefix)
			for n, x := range b.Nodes {
				k.node(fmt.Sprintf("%s.blocks[%d].nodes[%d]", at, j, n), v.Name, p, b.Prefix, x)
			}
		}
	}
}

func (k *checker) node(key, vrf string, p Pool, block netip.Prefix, n BlockNode) {
	if !n.Address.IsValid() {
		k.fail(key+".address", "an address is needed")
	}
	for name, h := range map[string]*Hop{"tunnel": n.Tunnel, "direct": n.Direct} {
		if h != nil {
			k.hop(key+"."+name, vrf, h, block)
		}
	}
	if way, h := n.way(p); h == nil {
		k.fail(key+"."+way, "needed: mode %s goes that way", p.Mode)
	}
}

// way returns which of its ways a node is reached by, nil if it has not got it.
func (n *BlockNode) way(p Pool) (name string, h *Hop) {
	if p.Mode.Direct(n.Address, p.Subnets) {
		return "direct", n.Direct
	}
	return "tunnel", n.Tunnel
}

func (k *checker) hop(key, vrf string, h *Hop, to netip.Prefix) {
	g := k.segments[h.Segment]
	switch {
	case g == nil:
		k.fail(key+".segment", "there is no segment of VNI %d", h.Segment)
		return
	case g.Gateway == nil || g.Gateway.VRF != vrf:
		k.fail(key+".segment", "VRF %q has no gateway in VNI %d", vrf, h.Segment)
		return
	}
	var t *Tunnel
	if h.Remote.IsValid() || k.bare(g) || !h.MAC.IsZero() {
		t = k.tunnelOf(key, g, h.Tunnel)
	} else if h.Tunnel != "" {
		k.fail(key+".tunnel", "is for remote")
	}
	if h.VNI != 0 && h.MAC.IsZero() {
		k.fail(key+".vni", "is for a router behind a tunnel, which has a mac")
	} else if !h.VNI.Valid() {
		k.fail(key+".vni", "%d; allowed are 1 to %d, and 0 for what the tunnel calls it here", h.VNI, frame.MaxVNI)
	}
	switch {
	case !k.bare(g) && h.IP.IsValid() && (!h.MAC.IsZero() || h.Remote.IsValid()):
		k.fail(key+".ip", "is for a neighbour, mac and remote are for a router behind a tunnel")
	case k.bare(g) && len(g.in()) == 0:
		if h.IP.IsValid() || h.Remote.IsValid() || !h.MAC.IsZero() {
			k.fail(key, "behind an IP port there are neither addresses nor MACs to choose from")
		}
	case k.bare(g):
		if k.remote(key+".remote", t, h.Remote); h.IP.IsValid() || !h.MAC.IsZero() {
			k.fail(key, "a tunnel for IP has nodes only: remote")
		}
	case !h.MAC.IsZero():
		switch {
		case h.MAC.IsGroup():
			k.fail(key+".mac", "%v is not one host's", h.MAC)
		case h.MAC == g.Gateway.MAC || h.MAC == g.Gateway.Own:
			k.fail(key+".mac", "%v is the gateway's own", h.MAC)
		}
		if h.IP.IsValid() {
			k.fail(key+".ip", "a router behind a tunnel has mac and remote alone")
		}
		if len(g.in()) == 0 {
			k.fail(key+".segment", "VNI %d is in no tunnel", h.Segment)
		}
		k.remote(key+".remote", t, h.Remote)
	case h.Remote.IsValid():
		k.fail(key+".remote", "needs mac, that of the router behind it")
	case !h.IP.IsValid() || to.IsValid() && h.IP.Is4() != to.Addr().Is4():
		k.fail(key+".ip", "an address of the family of %v is needed", to)
	default:
		if err := l3.CheckNextHop(g.Gateway.Addresses, h.IP); err != nil {
			k.fail(key+".ip", "%v %v", h.IP, err)
		}
	}
}
