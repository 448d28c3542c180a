package evpn

import (
	"iter"
	"net/netip"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/evpn/internal/table"
	"github.com/vxswitch/vxswitch/frame"
)

// A Route is a route that a peer has said, or we.
type Route struct {
	Peer      netip.Addr   // who said it; none = we
	Type      uint8        // 1 to 5 (RFC 7432, RFC 9136)
	RD        string       // route distinguisher
	VNI       frame.VNI    // of types 2, 3 and 5: the first label, which for type 5 is the L3VNI
	L3VNI     frame.VNI    // of a type 2 with two labels
	MAC       frame.MAC    // of type 2
	IP        netip.Addr   // of type 2, if it has one; of types 3 and 4, the VTEP that says it
	Prefix    netip.Prefix // of type 5
	ESI       string       // Ethernet segment: of types 1 and 4, and of a type 2 whose host is on one
	Gateway   netip.Addr   // of type 5: the router behind which the prefix is, if it is not the VTEP
	VTEP      netip.Addr   // next hop
	RouterMAC frame.MAC    // of the VTEP, with an L3VNI
	Sequence  uint32       // of a MAC that has moved
	Sticky    bool         // the MAC never moves
	Targets   []string     // route targets
	Stale     bool         // of a session that was lost, and not said again yet
	LeftOut   string       // why it is used nowhere, "" if it is, or is ours
}

// Routes iterates over the routes of peers and ours, as they are when it begins, in no order.
func (s *Speaker) Routes() iter.Seq[Route] {
	return func(yield func(Route) bool) {
		s.mu.Lock()
		list := s.table.Routes()
		s.mu.Unlock()
		for i := range list {
			if !yield(shown(&list[i])) {
				return
			}
		}
	}
}

func shown(x *table.Said) Route {
	r := Route{Peer: x.Peer, Type: uint8(x.Kind), RD: x.RD.String(), VTEP: x.NextHop.Netip(), Stale: x.Stale, LeftOut: x.Left}
	for t := range x.Communities.Targets() {
		r.Targets = append(r.Targets, t.String())
	}
	r.RouterMAC, _ = x.Communities.RouterMAC()
	if e := x.Segment; e.Shared() {
		r.ESI = e.String()
	} else if x.ESI.Shared() {
		r.ESI = x.ESI.String()
	}
	switch x.Kind {
	case route.MACIP:
		r.MAC, r.IP = x.MAC, x.IP.Netip()
		r.Sequence, r.Sticky = x.Communities.Mobility()
	case route.Multicast, route.Segment:
		r.IP = x.IP.Netip()
	case route.Prefix:
		r.Prefix = netip.PrefixFrom(x.IP.Netip(), int(x.Bits))
		if gw := x.Gateway.Netip(); gw.IsValid() && !gw.IsUnspecified() {
			r.Gateway = gw
		}
	}
	if x.NumLabels > 0 {
		r.VNI = frame.VNI(x.Labels[0])
	}
	if x.NumLabels > 1 {
		r.L3VNI = frame.VNI(x.Labels[1])
	}
	return r
}
