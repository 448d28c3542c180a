package file

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/setting/conf"
)

// routed adds errors for settings of the VRF and of segments that are not there, or that rows of the section cannot use.
func (c *Config) routed(r *conf.Report, b *bgp.Config) {
	c.vrf(r, "bgp.vrf", b.VRF)
	if b.Segment != 0 {
		c.network(r, "bgp.", b.Segment, b.Routers, b.VRF)
		c.reached(r, "bgp.addresses", b.Addresses, b.VRF)
	}
	for i, l := range b.Links {
		at := fmt.Sprintf("bgp.links[%d].", i)
		c.network(r, at, l.Segment, l.Routers, b.VRF)
		c.reached(r, at+"addresses", l.Addresses, b.VRF)
		for e, vni := range map[bgp.Encapsulation]frame.VNI{bgp.IPIP: l.IPIP, bgp.VXLAN: l.VXLAN} {
			if key := at + e.String(); vni != 0 {
				if s := c.gatewayIn(r, key, vni, b.VRF); s != nil {
					c.carries(r, at, key, s, e, "", "")
				}
			}
		}
	}
	for i, p := range b.Pools {
		at := fmt.Sprintf("bgp.pools[%d].", i)
		if p.Encapsulation == bgp.Never || r.Failed(at+"segment") || r.Failed(at+"encapsulation") {
			continue
		}
		if s := c.gatewayIn(r, at+"segment", p.Segment, b.VRF); s != nil {
			c.carries(r, at, at+"segment", s, p.Encapsulation, "tunnel", p.Tunnel)
		}
	}
}

// member is routed for a member of a Calico cluster.
func (c *Config) member(r *conf.Report, k *calico.Config) {
	if c.BGP != nil && !k.NoBGP {
		r.Want("calico.noBGP", k.NoBGP, "true with the section bgp: a node speaks BGP once")
	}
	c.vrf(r, "calico.vrf", k.VRF)
	if k.Segment != 0 {
		c.network(r, "calico.", k.Segment, k.Routers, k.VRF)
	}
	for e, t := range map[bgp.Encapsulation]calico.Tunnel{bgp.IPIP: k.IPIP, bgp.VXLAN: k.VXLAN} {
		at := "calico." + e.String() + "."
		if t.Segment == 0 || r.Failed(at+"segment") {
			continue
		}
		s := c.gatewayIn(r, at+"segment", t.Segment, k.VRF)
		if s != nil && (t.IPv4 != "" || t.IPv6 == "") {
			c.carries(r, at, at+"segment", s, e, "ipv4", t.IPv4)
		}
		if s != nil && t.IPv6 != "" {
			c.carries(r, at, at+"segment", s, e, "ipv6", t.IPv6)
		}
	}
}

// network adds errors for a segment that is no network of nodes, and for routers on it that no packet would reach.
func (c *Config) network(r *conf.Report, at string, vni frame.VNI, routers []netip.Addr, vrf string) {
	s := c.gatewayIn(r, at+"segment", vni, vrf)
	if s == nil || r.Failed("segments") {
		return
	}
	if s.Gateway.MAC.IsZero() {
		r.Fail(at+"segment", vni, "has a tunnel or a port for IP; must be the segment of a port on the network of the nodes")
		return
	}
	for i, a := range routers {
		key := fmt.Sprintf("%srouters[%d]", at, i)
		if err := s.Gateway.CheckNextHop(netip.Prefix{}, a); err != nil && !r.Failed(key) {
			r.Fail(key, a, "%v", err)
		}
	}
}

// reached adds an error for each next hop that others get from us and that no packet to it would reach: it is that of no gateway in the VRF,
// and of no tunnel.
func (c *Config) reached(r *conf.Report, key string, list []netip.Addr, vrf string) {
	here := func(a netip.Addr) bool {
		return slices.ContainsFunc(c.Segments, func(s node.Segment) bool {
			return s.Gateway != nil && s.Gateway.VRF == vrf && slices.ContainsFunc(s.Gateway.Addresses, func(p netip.Prefix) bool { return p.Addr() == a })
		}) || slices.ContainsFunc(c.Tunnels, func(t node.Tunnel) bool { return t.Local == a || !t.Local.IsValid() || t.Local.IsUnspecified() })
	}
	for i, a := range list {
		if at := fmt.Sprintf("%s[%d]", key, i); c.has(vrf) && !here(a) && !r.Failed(at) && !r.Failed("segments") && !r.Failed("tunnels") {
			r.Want(at, a, "an address of a gateway in the VRF %q, or the local of a tunnel: others send packets there", vrf)
		}
	}
}

// vrf adds an error unless there is a VRF with a name.
func (c *Config) vrf(r *conf.Report, key, name string) {
	if !r.Failed(key) && !c.has(name) {
		r.Fail(key, name, "no such VRF")
	}
}

// has reports whether there is a VRF with a name.
func (c *Config) has(vrf string) bool {
	return slices.ContainsFunc(c.VRFs, func(v node.VRF) bool { return v.Name == vrf })
}

// gatewayIn returns the segment with a VNI, and adds an error if there is none, or it has no gateway in a VRF that is there.
func (c *Config) gatewayIn(r *conf.Report, key string, vni frame.VNI, vrf string) *node.Segment {
	i := slices.IndexFunc(c.Segments, func(s node.Segment) bool { return s.VNI == vni })
	switch {
	case r.Failed(key):
	case i < 0:
		r.Fail(key, vni, "no such segment")
	case !c.has(vrf): // which is the error
	case c.Segments[i].Gateway == nil || c.Segments[i].Gateway.VRF != vrf:
		r.Fail(key, vni, "segments[%d] has no gateway in the VRF %q", i, vrf)
	default:
		return &c.Segments[i]
	}
	return nil
}

// carries adds an error, to the key segment, unless a segment has a tunnel for an encapsulation, and that with the name that a key at at has.
func (c *Config) carries(r *conf.Report, at, segment string, s *node.Segment, e bgp.Encapsulation, key, name string) {
	names := tunnelsOf(s)
	if name != "" {
		if !slices.Contains(names, name) {
			r.Want(at+key, name, "a tunnel of the segment")
			return
		}
		names = []string{name}
	}
	fits := func(t node.Tunnel) bool {
		return slices.Contains(names, t.Name) && t.Type.Bare() == (e == bgp.IPIP)
	}
	switch {
	case r.Failed("tunnels") || r.Failed("segments") || slices.ContainsFunc(c.Tunnels, fits):
	case e == bgp.IPIP:
		r.Fail(segment, s.VNI, `the encapsulation is ipip: a tunnel of type "ipip" or "fou" is required there`)
	default:
		r.Fail(segment, s.VNI, `the encapsulation is vxlan: a tunnel of type "vxlan" or "gpe" is required there`)
	}
}
