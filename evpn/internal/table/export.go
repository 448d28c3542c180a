package table

import (
	"slices"
	"unique"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// communities returns the extended communities of a route, in memory that equal ones share.
func communities(targets []route.Target, more ...route.Community) route.Communities {
	list := make([]route.Community, 0, len(targets)+1+len(more))
	for _, t := range targets {
		list = append(list, route.Community(t))
	}
	list = append(append(list, route.Encapsulation(route.VXLAN)), more...)
	return unique.Make(route.Join(list...)).Value()
}

// routes are those of a host that is ours: one for the MAC, and one for each of its addresses.
func (h *host) routes(t *Table) (list []route.Route) {
	s := h.s
	if !h.claimed || s.Silent || s.VTEP.Bits() == 0 {
		return nil
	}
	m := h.on(t)
	if h.static && m != nil && m.shut(s.VNI) {
		return nil
	}
	var moved []route.Community
	if h.sequence > 0 || h.static {
		moved = append(moved, route.Mobility(h.sequence, h.static))
	}
	targets := t.exports(s.Export, s.VNI)
	r := route.Route{Key: route.Key{Kind: route.MACIP, RD: t.rdOf(s), MAC: h.mac}, NumLabels: 1, NextHop: s.VTEP, Communities: communities(targets, moved...)}
	r.Labels[0] = uint32(s.VNI)
	if m != nil {
		r.ESI = m.ESI
	}
	list = append(list, r)
	v := t.vrfs[s.VRF]
	for _, a := range h.addresses() {
		r := r
		r.IP = a.ip
		more := slices.Clone(moved)
		if a.router && a.ip.Bits() == 128 {
			more = append(more, route.NDFlags(true, false))
		}
		both := targets
		if v != nil && v.symmetric() && !a.ip.Netip().IsLinkLocalUnicast() {
			r.Labels[1], r.NumLabels = uint32(v.L3VNI), 2
			both = union(targets, t.exports(v.VRF.Export, v.L3VNI))
			more = append(more, route.RouterMAC(v.RouterMAC))
		}
		r.Communities = communities(both, more...)
		list = append(list, r)
	}
	return list
}

// union returns the targets of both lists, each once.
func union(a, b []route.Target) []route.Target {
	list := slices.Clone(a)
	for _, t := range b {
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

// hold counts the addresses that the host has here in its VRF, where routes of peers to them do not count.
func (h *host) hold(t *Table) {
	var now []route.Addr
	v := t.vrfs[h.s.VRF]
	if h.claimed && v != nil && v.L3VNI != 0 { // without, there are no routes of peers
		for _, a := range h.addresses() {
			now = append(now, a.ip)
		}
	}
	if slices.Equal(now, h.held) && h.heldIn == v {
		return
	}
	h.heldIn.count(t, h.held, -1)
	v.count(t, now, 1)
	h.held, h.heldIn = now, v
}

// ownFlood says that we want the floods of a segment.
type ownFlood struct {
	nothing
	s *segment
}

func (f *ownFlood) routes(t *Table) []route.Route {
	s := f.s
	if s.Silent || s.VTEP.Bits() == 0 {
		return nil
	}
	r := route.Route{Key: route.Key{Kind: route.Multicast, RD: t.rdOf(s), IP: s.VTEP}, NextHop: s.VTEP, Tunnel: s.VTEP, TunnelType: ingressReplication,
		Communities: communities(t.exports(s.Export, s.VNI))}
	r.Labels[0], r.NumLabels = uint32(s.VNI), 1
	if s.NoBroadcast {
		r.TunnelFlags |= noBroadcast
	}
	if s.NoUnknown {
		r.TunnelFlags |= noUnknown
	}
	return []route.Route{r}
}

// A gateway says the addresses of gateways that only we have (RFC 7432, section 10.1).
type gateway struct {
	nothing
	s *segment
}

func (g *gateway) routes(t *Table) (list []route.Route) {
	s := g.s
	if s.Silent || s.VTEP.Bits() == 0 {
		return nil
	}
	for _, x := range s.Gateways {
		if x.Anycast || len(x.MACs) == 0 {
			continue
		}
		r := route.Route{Key: route.Key{Kind: route.MACIP, RD: t.rdOf(s), MAC: x.MACs[0]}, NumLabels: 1, NextHop: s.VTEP,
			Communities: communities(t.exports(s.Export, s.VNI), route.Mobility(0, true), route.DefaultGateway())}
		r.Labels[0] = uint32(s.VNI)
		for _, a := range x.Addresses {
			r.IP = route.AddrFrom(a.Addr())
			if !slices.ContainsFunc(list, func(o route.Route) bool { return o.Key == r.Key }) {
				list = append(list, r)
			}
		}
	}
	return list
}
