package model

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
)

// bgp says who the node is in BGP, and who its peers are. A node without an address for BGP has none.
func (x *compiler) bgp() {
	id := x.c.RouterID
	if !id.IsValid() {
		id = x.own.IPv4.Network.Addr()
	}
	if !x.own.IPv4.BGP && !x.own.IPv6.BGP {
		x.problem("nodes/"+x.c.Node, "spec.bgp has no address: there is no BGP")
		return
	}
	if !id.IsValid() {
		x.problem("nodes/"+x.c.Node, "spec.bgp.ipv4Address: there is none, and no router ID: there is no BGP")
		return
	}
	c := &bgp.Config{
		AS: cmp.Or(x.own.AS, x.global.AS), RouterID: id, Listen: x.c.Listen, Port: x.port(x.c.Node), VRF: x.c.VRF, Segment: x.c.Segment,
		Distance: x.c.Distance, Pools: x.bgpPools(), Borrowed: true, Lent: []netip.Prefix{},
	}
	for _, is4 := range []bool{true, false} {
		if e := x.own.Of(is4); e.BGP {
			c.Addresses = append(c.Addresses, e.Network.Addr())
		}
	}
	if len(c.Listen) == 0 {
		c.Listen = c.Addresses
	}
	if c.Segment != 0 {
		c.Routers = x.c.Routers
	}
	if x.own.Cluster.IsValid() && x.own.Cluster != id {
		x.problem("nodes/"+x.c.Node, "spec.bgp.routeReflectorClusterID %v is not carried: routes are reflected with the router ID, %v", x.own.Cluster, id)
	}
	x.plan.BGP = c
	b := &peering{compiler: x, at: map[netip.AddrPort]bool{}, all: map[netip.AddrPort]bool{}, by: map[netip.Addr]session{}, addrs: map[netip.Addr][]string{}}
	for name, n := range x.nodes {
		for _, e := range []*resource.Ends{&n.IPv4, &n.IPv6} {
			if e.BGP {
				b.addrs[e.Network.Addr()] = append(b.addrs[e.Network.Addr()], name)
			}
		}
	}
	b.run()
	c.Peers = b.peers()
}

// A peering finds the sessions of a node, as confd does it for BIRD: those of BGPPeers of all nodes, then those of BGPPeers of this node,
// then what others' BGPPeers need on this side, and the mesh. The first session with an address and port counts.
type peering struct {
	*compiler
	at    map[netip.AddrPort]bool
	all   map[netip.AddrPort]bool // by BGPPeers of all nodes
	by    map[netip.Addr]session
	addrs map[netip.Addr][]string // nodes for BGP
	full  bool
}

// A session is one with a peer.
type session struct {
	bgp.Peer
	cluster netip.Addr // of route reflectors that the peer is one of, if it was chosen as a node
	from    string     // the resource
}

func (b *peering) run() {
	for _, everyone := range []bool{true, false} {
		for name, p := range All[resource.Peer](b.s, resource.KindPeer) {
			if everyone == p.HasSelection || !everyone && !b.isFor(p, b.c.Node, b.own) {
				continue
			}
			if b.refuses(name, p) {
				continue
			}
			if p.Peers == nil {
				b.router(name, p, everyone)
				continue
			}
			for _, node := range b.sorted() {
				if p.Peers.Matches(b.nodes[node].Labels) {
					b.node(name, p, node, everyone)
				}
			}
		}
	}
	for name, p := range All[resource.Peer](b.s, resource.KindPeer) {
		if !p.Manual && b.refused(p) == "" {
			b.reverse(name, p)
		}
	}
	b.mesh()
}

func (b *peering) sorted() []string { return slices.Sorted(maps.Keys(b.nodes)) }

// isFor reports whether a BGPPeer is for a node.
func (b *peering) isFor(p *resource.Peer, name string, n *resource.Node) bool {
	switch {
	case p.Nodes != nil:
		return p.Nodes.Matches(n.Labels)
	case p.Node != "":
		return p.Node == name
	}
	return true
}

// refused returns what a BGPPeer asks for that its sessions cannot be without, "" for nothing.
func (b *peering) refused(p *resource.Peer) string {
	as := cmp.Or(b.own.AS, b.global.AS)
	switch {
	case p.Password:
		return "spec.password is a secret of Kubernetes, which the datastore does not have"
	case p.Workloads:
		return "spec.localWorkloadSelector is not carried"
	case p.TTLSecurity:
		return "spec.ttlSecurity is not carried"
	case p.LocalAS != 0 && p.LocalAS != as:
		return fmt.Sprintf("spec.localASNumber %d is not carried: our AS is %d", p.LocalAS, as)
	}
	return b.unfiltered(p)
}

// refuses names what of a BGPPeer of ours is not carried, and reports whether it has no session for that.
func (b *peering) refuses(name string, p *resource.Peer) bool {
	if why := b.refused(p); why != "" {
		b.problem("bgppeers/"+name, "is left out: %s", why)
		return true
	}
	for _, f := range p.NotCarried {
		b.problem("bgppeers/"+name, "%s is not carried", f)
	}
	return false
}

// router adds the session with an address.
func (b *peering) router(name string, p *resource.Peer, everyone bool) {
	if is4 := p.IP.Is4(); !b.own.Of(is4).BGP {
		b.problem("bgppeers/"+name, "is left out: %v needs spec.bgp.%sAddress of nodes/%s", p.IP, family(is4), b.c.Node)
		return
	}
	if b.ours(p.IP) {
		if len(b.reversed(p)) == 0 { // or else the sessions are those of others with us
			b.problem("bgppeers/"+name, "is left out: %v is an address of ours", p.IP)
		}
		return
	}
	s := session{from: "bgppeers/" + name, Peer: bgp.Peer{Addr: p.IP, AS: cmp.Or(p.AS, b.global.AS), Port: p.Port}}
	if s.Port == 0 {
		if list := b.nodesAt(p); len(list) > 0 {
			s.Port = b.port(list[0])
		}
	}
	if everyone && len(b.addrs[p.IP]) > 0 {
		s.Passive = b.waits(p.IP)
	}
	b.add(s, p, everyone)
}

// nodesAt returns the nodes that a BGPPeer with an address means, sorted.
func (b *peering) nodesAt(p *resource.Peer) (list []string) {
	for _, name := range b.addrs[p.IP] {
		if cmp.Or(b.nodes[name].AS, b.global.AS) == cmp.Or(p.AS, b.global.AS) && (p.Port == 0 || cmp.Or(b.port(name), p.Port) == p.Port) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// node adds sessions with a node, of the family of a BGPPeer with an address.
func (b *peering) node(name string, p *resource.Peer, node string, everyone bool) {
	n := b.nodes[node]
	for _, is4 := range []bool{true, false} {
		if e := n.Of(is4); (p.Peers != nil || p.IP.Is4() == is4) && b.speaks(node, is4) {
			b.add(session{from: "bgppeers/" + name, cluster: n.Cluster, Peer: bgp.Peer{Addr: e.Network.Addr(), AS: cmp.Or(n.AS, b.global.AS), Port: b.port(node)}}, p, everyone)
		}
	}
}

// speaks reports whether a node and we have addresses of a family for BGP, and names it if both have the same.
func (b *peering) speaks(node string, is4 bool) bool {
	e := b.nodes[node].Of(is4)
	if !e.BGP || !b.own.Of(is4).BGP {
		return false
	}
	a := e.Network.Addr()
	if b.ours(a) {
		b.once("nodes/"+node, "%v is an address of ours: there is no session", a)
		return false
	}
	return true
}

// reverse adds sessions with nodes whose BGPPeer is with us.
func (b *peering) reverse(name string, p *resource.Peer) {
	for _, node := range b.reversed(p) {
		b.node(name, p, node, false)
	}
}

// reversed returns the nodes whose peer we are by a BGPPeer, in order.
func (b *peering) reversed(p *resource.Peer) (list []string) {
	us := b.own.Of(p.IP.Is4())
	switch {
	case p.Peers != nil:
		if !p.Peers.Matches(b.own.Labels) {
			return nil
		}
	case !us.BGP || us.Network.Addr() != p.IP || cmp.Or(b.own.AS, b.global.AS) != cmp.Or(p.AS, b.global.AS) ||
		p.Port != 0 && cmp.Or(b.port(b.c.Node), p.Port) != p.Port:
		return nil
	}
	for _, node := range b.sorted() {
		if b.isFor(p, node, b.nodes[node]) {
			list = append(list, node)
		}
	}
	return list
}

// add adds the session of a BGPPeer, unless one has the address and port.
func (b *peering) add(s session, p *resource.Peer, everyone bool) {
	key := netip.AddrPortFrom(s.Addr, s.Port)
	if everyone && b.all[key] || !everyone && (b.all[key] || b.at[key]) {
		return
	}
	if everyone {
		b.all[key] = true
	}
	b.at[key] = true
	s.OwnAS = uint8(p.OwnAS)
	if !p.NoSource {
		s.Local = b.local(s.Addr.Is4())
	}
	if why := b.filter(&s, p.Filters); why != "" {
		b.problem(s.from, "is left out for %v: %s", s.Addr, why)
		return
	}
	b.put(s)
}

// mesh adds the sessions between all nodes but route reflectors.
func (b *peering) mesh() {
	if b.global.NoMesh || b.own.Cluster.IsValid() {
		return
	}
	if b.global.Password {
		b.problem("bgpconfigurations/default", "there is no mesh: spec.nodeMeshPassword is a secret of Kubernetes, which the datastore does not have")
		return
	}
	for _, name := range b.sorted() {
		n := b.nodes[name]
		if n.Cluster.IsValid() {
			continue
		}
		for _, is4 := range []bool{true, false} {
			a := n.Of(is4).Network.Addr()
			if _, ok := b.by[a]; !ok && b.speaks(name, is4) {
				b.put(session{from: "nodes/" + name, Peer: bgp.Peer{Addr: a, AS: cmp.Or(n.AS, b.global.AS), Port: b.port(name), Local: b.local(is4), Passive: b.waits(a)}})
			}
		}
	}
}

// waits reports which side of a session between two nodes waits for the other: the one with the lesser address, as text.
func (b *peering) waits(a netip.Addr) bool {
	return a.String() > b.own.Of(a.Is4()).Network.Addr().String()
}

// local returns the source address of sessions of a family, none if there is none.
func (b *peering) local(is4 bool) netip.Addr {
	for _, a := range b.c.Local {
		if a.Is4() == is4 {
			return a
		}
	}
	if e := b.own.Of(is4); e.BGP {
		return e.Network.Addr()
	}
	return netip.Addr{}
}

// ours reports whether sessions are from an address, or are accepted there.
func (b *peering) ours(a netip.Addr) bool {
	return a == b.own.Of(a.Is4()).Network.Addr() || slices.Contains(b.c.Local, a) || slices.Contains(b.c.Listen, a)
}

// put keeps a session: one for each address, for package bgp tells peers apart by it.
func (b *peering) put(s session) {
	first, ok := b.by[s.Addr]
	switch {
	case ok:
		b.problem(s.from, "is left out for %v, port %d: %s has a session with it", s.Addr, cmp.Or(s.Port, bgp.DefaultPort), first.from)
		return
	case len(b.by) >= MaxPeers:
		if !b.full {
			b.problem("peers", "more than %d: those of %s and others are left out", MaxPeers, s.from)
		}
		b.full = true
		return
	}
	c := b.plan.BGP
	if s.AS == c.AS && b.own.Cluster.IsValid() && s.cluster != b.own.Cluster {
		s.Client = true
	}
	if s.AS != c.AS {
		s.Hops = 255 // Calico's sessions are all over several hops
	}
	s.GracefulRestart = b.c.Restarts
	b.by[s.Addr] = s
}

// peers returns the sessions, sorted by address.
func (b *peering) peers() (list []bgp.Peer) {
	for _, s := range b.by {
		list = append(list, s.Peer)
	}
	slices.SortFunc(list, func(a, b bgp.Peer) int { return a.Addr.Compare(b.Addr) })
	return list
}
