package model

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/frame"
)

// A pool is one that is carried, or is there for other pools and nodes to stay out of.
type pool struct {
	*resource.Pool
	name    string
	byBGP   bool // routes to its blocks are those of peers, and not of blocks
	refused bool
}

// readPools says of each pool who makes its routes: VXLAN is never a matter of BGP, IP-in-IP and no tunnel are
// as programClusterRoutes of the default BGPConfiguration says.
func (x *compiler) readPools() {
	for name, r := range All[resource.Pool](x.s, resource.KindPool) {
		p := pool{Pool: r, name: name}
		p.byBGP = !x.c.NoBGP && (p.Encapsulation == bgp.IPIP && x.global.IPIP || p.Encapsulation == bgp.Never && x.global.Direct)
		of := "ippools/" + name
		if i := slices.IndexFunc(x.pools, func(o pool) bool { return o.Prefix.Overlaps(r.Prefix) }); i >= 0 {
			x.problem(of, "is left out: spec.cidr %v is also that of ippools/%s, %v", r.Prefix, x.pools[i].name, x.pools[i].Prefix)
			continue
		}
		if why := x.unfit(&p); why != "" && !p.Services {
			x.problem(of, "is left out: %s", why)
			p.refused = true
		}
		if r.NAT {
			x.problem(of, "spec.natOutgoing is not carried: packets to the outside keep the address of the workload")
		}
		is4 := r.Prefix.Addr().Is4()
		if e := x.own.Of(is4); p.Encapsulation == bgp.VXLAN && !p.refused && !p.Services && !e.VXLAN.IsValid() {
			x.problem("nodes/"+x.c.Node, "has no spec.%sVXLANTunnelAddr, which ippools/%s needs: other nodes send it nothing", family(is4), name)
		}
		x.pools = append(x.pools, p)
	}
}

// family begins the names of fields.
func family(is4 bool) string {
	if is4 {
		return "ipv4"
	}
	return "ipv6"
}

// unfit says which setting a pool needs that there is not, "" for none.
func (x *compiler) unfit(p *pool) string {
	switch {
	case p.Encapsulation == bgp.VXLAN && x.c.VXLAN.Segment == 0:
		return "spec.vxlanMode needs a segment for VXLAN here"
	case p.Encapsulation == bgp.IPIP && x.c.IPIP.Segment == 0:
		return "spec.ipipMode needs a segment for IP-in-IP here"
	case p.direct() && x.c.Segment == 0:
		return "ways without a tunnel need a segment here"
	}
	return ""
}

// direct reports whether packets to a pool may travel as they are.
func (p *pool) direct() bool { return p.Encapsulation == bgp.Never || p.Mode == bgp.CrossSubnet }

// in returns the pool with all of a prefix, nil if there is none.
func (x *compiler) in(p netip.Prefix) *pool {
	for i := range x.pools {
		if q := x.pools[i].Prefix; q.Bits() <= p.Bits() && q.Contains(p.Addr()) {
			return &x.pools[i]
		}
	}
	return nil
}

// tunnel returns the segment and the tunnel of a pool.
func (x *compiler) tunnel(p *pool) (frame.VNI, string) {
	t := &x.c.IPIP
	if p.Encapsulation == bgp.VXLAN {
		t = &x.c.VXLAN
	}
	if p.Encapsulation == bgp.Never {
		return 0, ""
	}
	return t.Segment, t.name(p.Prefix.Addr().Is4())
}

// bgpPools are those whose routes are taken from peers.
func (x *compiler) bgpPools() (list []bgp.Pool) {
	for i := range x.pools {
		p := &x.pools[i]
		if !p.byBGP || p.refused || p.Services {
			continue
		}
		vni, name := x.tunnel(p)
		list = append(list, bgp.Pool{Prefix: p.Prefix, Encapsulation: p.Encapsulation, Mode: p.Mode, Segment: vni, Tunnel: name})
	}
	return list
}
