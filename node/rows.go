package node

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// rows returns the rows that a configuration has for the plane.
func rows(cfg *Config) (list []control.Route) {
	segments := map[frame.VNI]*Segment{}
	for i := range cfg.Segments {
		s := &cfg.Segments[i]
		segments[s.VNI] = s
		for _, x := range s.in() {
			for _, a := range x.Flood {
				list = append(list, control.Flood{VNI: s.VNI, VTEP: netip.AddrPortFrom(a, 0), Tunnel: s.named(x.Tunnel)})
			}
		}
		if s.Wire.IsValid() {
			list = append(list, control.Flood{VNI: s.VNI, VTEP: netip.AddrPortFrom(s.Wire, 0)})
		}
		for _, e := range s.FDB {
			m := control.MAC{VNI: s.VNI, MAC: e.MAC, Port: e.Port, Sticky: e.Sticky}
			if e.Port == "" {
				m.VTEP, m.Tunnel = netip.AddrPortFrom(e.Remote, 0), s.named(e.Tunnel)
			}
			list = append(list, m)
		}
	}
	for _, v := range cfg.VRFs {
		for _, r := range v.Routes {
			var via []*Hop
			for i := range r.Via {
				via = append(via, &r.Via[i])
			}
			list = append(list, prefixes(segments, v.Name, r.Prefix, via)...)
		}
		for _, p := range v.Pools {
			for _, b := range p.Blocks {
				var via []*Hop
				for i := range b.Nodes {
					_, h := b.Nodes[i].way(p)
					via = append(via, h)
				}
				list = append(list, prefixes(segments, v.Name, b.Prefix, via)...)
			}
		}
	}
	return list
}

// prefixes returns a row for each way to a prefix, or the one that drops.
func prefixes(segments map[frame.VNI]*Segment, vrf string, p netip.Prefix, via []*Hop) (list []control.Route) {
	if len(via) == 0 {
		return []control.Route{control.Prefix{VRF: vrf, Prefix: p}}
	}
	for _, h := range via {
		x := control.Via{VNI: h.Segment, IP: h.IP, MAC: h.MAC}
		if h.Remote.IsValid() {
			x.VTEP, x.Tunnel = netip.AddrPortFrom(h.Remote, 0), segments[h.Segment].named(h.Tunnel)
		}
		list = append(list, control.Prefix{VRF: vrf, Prefix: p, Via: x})
	}
	return list
}
