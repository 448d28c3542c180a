package node

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// rows returns the rows of a configuration for the plane.
func rows(cfg *Config) (list []control.Row) {
	segments := index(cfg).segments
	for i := range cfg.Segments {
		s := &cfg.Segments[i]
		for _, x := range s.in() {
			for _, a := range x.Flood {
				list = append(list, control.Flood{VNI: s.VNI, VTEP: netip.AddrPortFrom(a, 0), Tunnel: s.named(x.Tunnel)})
			}
		}
		if s.CrossConnect.IsValid() {
			list = append(list, control.Flood{VNI: s.VNI, VTEP: netip.AddrPortFrom(s.CrossConnect, 0)})
		}
		for _, e := range s.FDB {
			list = append(list, e.rows(s)...)
		}
	}
	for _, v := range cfg.VRFs {
		for _, r := range v.Routes {
			list = append(list, prefixes(segments, v.Name, r.Prefix, r.Via)...)
		}
		for i := range v.Pools {
			p := &v.Pools[i]
			for _, b := range p.Blocks {
				var via []Hop
				for i := range b.Nodes {
					x := &b.Nodes[i]
					_, h := x.way(p)
					via = append(via, *h)
					if t := x.Tunnel; t != nil && t != h && t.MAC.IsZero() && t.Remote.IsValid() { // accepted as a peer, though packets to it go directly
						list = append(list, control.Flood{VNI: t.Segment, VTEP: netip.AddrPortFrom(t.Remote, 0)})
					}
				}
				list = append(list, prefixes(segments, v.Name, b.Prefix, via)...)
			}
		}
	}
	return list
}

// lacksPort reports whether a row leads to a port that is down: to the port itself, or through the interface on it. It waits
// until the port is back.
func (n *Node) lacksPort(w wanted, r control.Row) bool {
	failed := func(port string) bool {
		c := w.ports[port]
		return c != nil && n.ports[port] == nil
	}
	switch r := r.(type) {
	case control.MAC:
		if g := w.segments[r.VNI]; g != nil {
			if list := g.membersNamed(r.Port); len(list) == 1 { // one of several on the port
				return failed(list[0].Port)
			}
		}
		return failed(r.Port)
	case control.Prefix:
		g := w.segments[r.Via.VNI]
		return r.Via != (control.Via{}) && g != nil && !g.ethernet() && slices.ContainsFunc(g.Members, func(m Member) bool { return failed(m.Port) })
	}
	return false
}

// rows returns the row of an entry and those of its group of peers.
func (e *FDB) rows(s *Segment) []control.Row {
	m := control.MAC{VNI: s.VNI, MAC: e.MAC, Port: e.Port, Filter: e.Filter, Sticky: e.Sticky}
	if e.Port != "" || e.Filter {
		return []control.Row{m}
	}
	if m.Tunnel = s.named(e.Tunnel); len(e.Remotes) == 0 {
		m.VTEP, m.FarVNI = netip.AddrPortFrom(e.Remote, 0), e.VNI
		return []control.Row{m}
	}
	if m.Group = fmt.Sprint(e.Remotes); e.VNI != 0 { // of all entries with the same
		m.Group += fmt.Sprint(" vni ", e.VNI)
	}
	list := []control.Row{m}
	for _, a := range e.Remotes {
		list = append(list, control.Group{VNI: s.VNI, Name: m.Group, VTEP: netip.AddrPortFrom(a, 0), FarVNI: e.VNI, Tunnel: m.Tunnel})
	}
	return list
}

// prefixes returns a row for each next hop of a prefix, or the row that drops.
func prefixes(segments map[frame.VNI]*Segment, vrf string, p netip.Prefix, via []Hop) (list []control.Row) {
	if len(via) == 0 {
		return []control.Row{control.Prefix{VRF: vrf, Prefix: p}}
	}
	for _, h := range via {
		x := control.Via{VNI: h.Segment, IP: h.IP, MAC: h.MAC, Weight: h.Weight}
		if h.Remote.IsValid() {
			x.VTEP, x.FarVNI, x.Tunnel = netip.AddrPortFrom(h.Remote, 0), h.VNI, segments[h.Segment].named(h.Tunnel)
		}
		list = append(list, control.Prefix{VRF: vrf, Prefix: p, Via: x})
	}
	return list
}
