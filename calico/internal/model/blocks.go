package model

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// blackhole is the distance of rows of our own blocks: whatever else the VRF has comes before.
const blackhole = 255

// readNodes leaves out nodes, family by family, that would take what is not theirs.
func (x *compiler) readNodes() {
	macs := map[frame.MAC]string{x.own.MAC(x.c.Node, true): x.c.Node, x.own.MAC(x.c.Node, false): x.c.Node}
	for name, r := range All[resource.Node](x.s, resource.KindNode) {
		if name == x.c.Node {
			continue
		}
		n := *r
		x.nodes[name] = &n
		for _, is4 := range []bool{true, false} {
			e := n.Of(is4)
			if !e.Network.IsValid() {
				continue
			}
			a := e.Network.Addr()
			if a == x.own.Of(is4).Network.Addr() {
				x.problem("nodes/"+name, "%v is our address", a)
				*e = resource.Ends{}
				continue
			}
			if p := x.in(netip.PrefixFrom(a, a.BitLen())); p != nil {
				x.problem("nodes/"+name, "%v is in ippools/%s, whose packets need it", a, p.name)
				*e = resource.Ends{}
				continue
			}
			if !e.VXLAN.IsValid() {
				continue
			}
			mac := n.MAC(name, is4)
			if first, ok := macs[mac]; ok && first != name {
				x.problem("nodes/"+name, "spec.vxlanTunnelMACAddr %v is that of nodes/%s", mac, first)
				e.VXLAN = netip.Addr{}
				continue
			}
			macs[mac] = name
		}
	}
}

// blocks makes rows of the blocks of other nodes, and announces those of ours.
func (x *compiler) blocks() {
	type item struct {
		prefix netip.Prefix
		*resource.Block
	}
	var list []item
	for _, b := range All[resource.Block](x.s, resource.KindBlock) {
		list = append(list, item{b.Prefix, b})
	}
	slices.SortFunc(list, func(a, b item) int { return a.prefix.Compare(b.prefix) })
	outside, left := 0, 0
	for _, b := range list {
		p := x.in(b.prefix)
		if p == nil || hostaddr.Routed(b.prefix) != nil {
			outside++
			continue
		}
		if p.refused || p.Services {
			continue
		}
		if len(x.plan.Rows) >= MaxRows {
			left++
			continue
		}
		x.block(p, b.Block)
	}
	if outside > 0 {
		x.problem("blocks", "%d in no pool, which have no routes", outside)
	}
	if left > 0 || len(x.plan.Rows) > MaxRows {
		x.problem("blocks", "more than %d routes: those of %d blocks are left out", MaxRows, left)
		x.plan.Rows = x.plan.Rows[:min(len(x.plan.Rows), MaxRows)]
	}
	if x.plan.BGP != nil {
		x.plan.BGP.Import = x.reject
	}
}

func (x *compiler) block(p *pool, b *resource.Block) {
	switch {
	case b.Node == x.c.Node:
		if a := One[resource.Affinity](x.s, resource.KindAffinity, b.Prefix.String()); a == nil || a.Confirmed() {
			x.announce(p, b.Prefix)
		}
	case b.Node != "":
		x.route(p, b.Prefix, b.Node)
	}
	if b.Prefix.IsSingleIP() && b.Node != "" {
		return
	}
	for _, a := range b.Borrowed {
		host := netip.PrefixFrom(a.IP, a.IP.BitLen())
		if a.Node == x.c.Node {
			x.announce(p, host)
			continue
		}
		if c := x.plan.BGP; c != nil && b.Node == x.c.Node && len(c.Lent) < MaxRows {
			c.Lent = append(c.Lent, host)
		}
		x.route(p, host, a.Node)
	}
}

// announce has BGP announce a prefix of ours. What nobody has of a block is unreachable here, whether or not it is announced.
func (x *compiler) announce(p *pool, prefix netip.Prefix) {
	if x.taken[prefix] {
		return
	}
	x.taken[prefix] = true
	c := x.plan.BGP
	if c != nil && !p.NoExport && x.own.Of(prefix.Addr().Is4()).BGP {
		c.Announce = append(c.Announce, prefix)
		return
	}
	if prefix.IsSingleIP() {
		return
	}
	x.plan.Rows = append(x.plan.Rows, control.Prefix{VRF: x.c.VRF, Prefix: prefix, Distance: blackhole})
	if c != nil { // no peer takes addresses of it
		x.reject = append(x.reject, bgp.Rule{Prefix: prefix, Action: bgp.Reject})
	}
}

// route adds a row for addresses that another node has, as Felix has it:
//
//	pool                        node on our network    elsewhere
//	Never                       directly               by a router
//	IPIP, VXLAN  CrossSubnet    directly               in the tunnel
//	             Always         in the tunnel          in the tunnel
func (x *compiler) route(p *pool, prefix netip.Prefix, node string) {
	if p.byBGP || x.taken[prefix] {
		return
	}
	is4 := prefix.Addr().Is4()
	of := "nodes/" + node
	n := x.nodes[node]
	if n == nil {
		x.once(of, "the datastore has no such node that could be read, but addresses on it")
		return
	}
	e := n.Of(is4)
	if !e.Network.IsValid() {
		x.once(of, "has no address that packets to %v could go to", p.Prefix)
		return
	}
	to := e.Network.Addr()
	own := x.own.Of(is4).Network
	via := control.Via{VNI: x.c.Segment, IP: to}
	switch on := own.IsValid() && own.Masked().Contains(to); {
	case p.direct() && on:
	case p.Encapsulation == bgp.Never:
		i := slices.IndexFunc(x.c.Routers, func(a netip.Addr) bool { return a.Is4() == is4 })
		if i < 0 {
			x.once(of, "%v is not on our network, and there is no router", to)
			return
		}
		via.IP = x.c.Routers[i]
	default:
		via = control.Via{VTEP: netip.AddrPortFrom(to, 0)}
		via.VNI, via.Tunnel = x.tunnel(p)
		if p.Encapsulation == bgp.VXLAN {
			if !e.VXLAN.IsValid() {
				x.once(of, "has no device for VXLAN: no address of one, or it was left out")
				return
			}
			via.MAC = n.MAC(node, is4)
		}
	}
	x.taken[prefix] = true
	x.plan.Rows = append(x.plan.Rows, control.Prefix{VRF: x.c.VRF, Prefix: prefix, Via: via, Distance: x.c.Distance})
}
