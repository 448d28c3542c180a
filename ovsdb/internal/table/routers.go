package table

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// A Router is a Logical_Router with a network of a port of the switch.
type Router struct {
	Name   string
	ID     string // its UUID
	Routes []Route
}

// A Route is one of static_routes.
type Route struct {
	Prefix netip.Prefix
	VNI    frame.VNI // of the segment of the next hop
	Via    netip.Addr
}

// routed returns the Logical_Routers with networks that are bound to ports of the switch, and their addresses by Logical_Switch. All
// networks of such a router are bound then: packets are routed to them here, and leave through their tunnels.
func (r *reader) routed(bound map[string]map[string]int) (routers []Router, in map[string]gateway) {
	in = map[string]gateway{}
	for _, id := range r.byName(LogicalRouter, maps.Keys(r.tables[LogicalRouter])) {
		row := r.Row(LogicalRouter, id)
		at := r.interfaces(id, row)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(at)), func(network string) bool { return bound[network] != nil }) {
			continue
		}
		n := 0
		for _, network := range slices.Sorted(maps.Keys(at)) {
			if _, taken := in[network]; taken {
				r.leave(LogicalRouter, id, SameRouter)
				continue
			}
			n++
			if in[network] = at[network]; bound[network] == nil {
				bound[network] = map[string]int{}
			}
		}
		if n > 0 {
			routers = append(routers, Router{Name: r.title(LogicalRouter, "name", id), ID: id})
		}
	}
	return routers, in
}

// A gateway is the interface of a router in a network.
type gateway struct {
	router    string // UUID
	addresses []netip.Prefix
	acl       string // UUID, "" = none
}

// interfaces returns those of a router by Logical_Switch. All addresses of one have the same ACL, or none.
func (r *reader) interfaces(id string, row Row) map[string]gateway {
	acls := map[string]string{}
	row.pairs("acl_binding", func(k, v any) {
		if s, ok := k.(string); ok {
			acls[s] = cmp.Or(uuid(v), "none")
		}
	})
	at, closed := map[string]gateway{}, map[string]bool{}
	row.pairs("switch_binding", func(k, v any) {
		network := uuid(v)
		s, _ := k.(string)
		p, err := netip.ParsePrefix(s)
		switch {
		case r.Row(LogicalSwitch, network) == nil:
			r.leave(LogicalRouter, id, NoSwitch)
			return
		case err != nil || hostaddr.Neighbour(p.Addr()) != nil || hostaddr.In(p, p.Addr()) != nil:
			r.leave(LogicalRouter, id, BadAddress)
			return
		}
		g, acl := at[network], cmp.Or(acls[s], acls[p.Addr().String()])
		if len(g.addresses) > 0 && g.acl != acl && !closed[network] {
			r.leave(LogicalRouter, id, RouterACL)
			closed[network] = true
		}
		at[network] = gateway{id, append(g.addresses, p), acl}
	})
	maps.DeleteFunc(at, func(network string, g gateway) bool {
		slices.SortFunc(g.addresses, netip.Prefix.Compare)
		return closed[network]
	})
	return at
}

// routes adds static_routes to routers: their next hops are in networks of the router that the switch has. A node would refuse the router
// for one that it cannot have.
func (r *reader) routes(routers []Router, segments []Segment) {
	for i := range routers {
		x := &routers[i]
		near := func(s Segment, to netip.Prefix) bool {
			return s.Router == x.ID && slices.ContainsFunc(s.Addresses, func(n netip.Prefix) bool { return connected(n, to) })
		}
		seen := map[netip.Prefix]bool{}
		r.Row(LogicalRouter, x.ID).pairs("static_routes", func(k, v any) {
			to, _ := k.(string)
			via, _ := v.(string)
			p, err := netip.ParsePrefix(to)
			hop, err2 := netip.ParseAddr(via)
			if err != nil || err2 != nil || p != p.Masked() || p.Addr().Is4() != hop.Is4() || p.Addr().Is4In6() || hostaddr.Routed(p) != nil || seen[p] ||
				slices.ContainsFunc(segments, func(s Segment) bool { return near(s, p) }) {
				r.leave(LogicalRouter, x.ID, BadRoute)
				return
			}
			seen[p] = true
			for _, s := range segments {
				at := func(n netip.Prefix) bool { return n.Contains(hop) && n.Addr() != hop && hostaddr.In(n, hop) == nil }
				if s.Router == x.ID && slices.ContainsFunc(s.Addresses, at) {
					x.Routes = append(x.Routes, Route{p, s.VNI, hop})
					return
				}
			}
			r.leave(LogicalRouter, x.ID, BadRoute)
		})
		slices.SortFunc(x.Routes, func(a, b Route) int { return a.Prefix.Compare(b.Prefix) })
	}
}

// connected reports whether a prefix is the network of a router's address, or one address of it that is no other host's.
func connected(n, p netip.Prefix) bool {
	return p == n.Masked() || p.IsSingleIP() && n.Contains(p.Addr()) && (p.Addr() == n.Addr() || hostaddr.In(n, p.Addr()) != nil)
}

// routedVNIs returns those of segments with a router.
func routedVNIs(segments []Segment) (all []frame.VNI) {
	for _, s := range segments {
		if s.Router != "" {
			all = append(all, s.VNI)
		}
	}
	return all
}

// sources adds to networks with routers the MACs of Arp_Sources_Remote: other VTEPs have them in the questions that they ask on behalf
// of the router, and get the answers.
func (r *reader) sources(all []host, routed []frame.VNI) []host {
	if len(routed) == 0 {
		return all
	}
	for id, row := range r.tables[ArpRemote] {
		mac, p, ok := r.behind(ArpRemote, id, row.text("src_mac"), row.ref("locator"))
		if !ok {
			continue
		}
		for _, vni := range routed {
			all = append(all, newHost(ArpRemote, id, vni, mac, p))
		}
	}
	return all
}
