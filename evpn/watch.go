package evpn

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/evpn/internal/table"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// heeded are the events that a Speaker needs to know at any time what is here.
var heeded = []frame.EventKind{
	frame.EventMACLearned, frame.EventMACMoved, frame.EventMACAged, frame.EventMACEvicted, frame.EventMACDeleted, frame.EventFlushed,
	frame.EventSegmentUp, frame.EventSegmentDown, frame.EventAttached, frame.EventDetached, frame.EventLocalChanged,
	frame.EventGatewayUp, frame.EventGatewayDown,
	frame.EventNeighbourLearned, frame.EventNeighbourMoved, frame.EventNeighbourAged, frame.EventNeighbourDeleted,
}

// seen is what the events have told of segments.
type seen struct {
	members   map[frame.VNI][]string  // names of ports, in the order in which they came
	connected map[frame.VNI][]network // of gateways
	ports     map[string]*portState   // by name
	listing   bool                    // segments and ports are not complete
}

// network is the prefix of a gateway's address, and its VRF.
type network struct {
	vrf    string
	prefix netip.Prefix
}

func (s *seen) init() {
	s.members, s.connected, s.ports = map[frame.VNI][]string{}, map[frame.VNI][]network{}, map[string]*portState{}
}

// watch carries out events, until there are none any more.
func (s *Speaker) watch(ctx context.Context, events *vswitch.Events) error {
	for {
		e, err := events.Next(ctx)
		if err != nil {
			return err
		}
		s.do(func(now time.Duration) { s.carry(now, &e) })
	}
}

// list takes what there is, as events: to begin with, and when events were lost.
func (s *Speaker) list(now time.Duration) {
	was := s.table.Segments()
	clear(s.seen.members)
	clear(s.seen.ports)
	s.seen.listing = true
	for _, vni := range was {
		s.table.Mark(vni)
	}
	for e := range s.node.Switch().State() {
		s.carry(now, &e)
	}
	for _, vni := range was {
		if _, ok := s.seen.members[vni]; !ok {
			s.down(vni)
		}
		s.table.Sweep(now, vni)
	}
	s.seen.listing = false
	s.settle(now)
	s.ethernets(now)
}

// carry carries out an event. s.mu is held, as in all that it calls.
func (s *Speaker) carry(now time.Duration, e *frame.Event) {
	switch e.Kind {
	case frame.EventOverflow:
		s.list(now)
	case frame.EventFlushed:
		s.table.Mark(e.VNI)
		for x := range s.node.Switch().State(e.VNI) {
			switch x.Kind {
			case frame.EventMACLearned, frame.EventNeighbourLearned:
				s.carry(now, &x)
			}
		}
		s.table.Sweep(now, e.VNI)
	case frame.EventSegmentUp:
		s.seen.members[e.VNI] = nil
		s.settle(now, e.VNI)
	case frame.EventSegmentDown:
		s.unplug(now, e.VNI, 0)
		delete(s.seen.members, e.VNI)
		s.down(e.VNI)
	case frame.EventAttached:
		if !slices.Contains(s.seen.members[e.VNI], e.Name) {
			s.seen.members[e.VNI] = append(s.seen.members[e.VNI], e.Name)
		}
		s.settle(now, e.VNI)
		s.plug(now, e)
	case frame.EventDetached:
		s.seen.members[e.VNI] = slices.DeleteFunc(s.seen.members[e.VNI], func(n string) bool { return n == e.Name })
		s.table.PortGone(now, e.VNI, e.Dest)
		s.unplug(now, e.VNI, e.Dest)
		s.settle(now, e.VNI)
	case frame.EventLocalChanged:
		s.settleAll(now)
	case frame.EventGatewayUp, frame.EventGatewayDown:
		s.settle(now, e.VNI)
	case frame.EventMACLearned, frame.EventMACMoved:
		if e.Dest.Local() {
			s.table.Here(now, e.VNI, e.MAC, e.Dest, false)
			return
		}
		s.table.Gone(now, e.VNI, e.MAC)
	case frame.EventMACAged, frame.EventMACEvicted, frame.EventMACDeleted:
		if e.Dest.Local() {
			s.table.Gone(now, e.VNI, e.MAC)
		}
	case frame.EventNeighbourLearned, frame.EventNeighbourMoved:
		if e.Kind == frame.EventNeighbourMoved {
			s.table.Silent(e.VNI, e.OldMAC, e.IP)
		}
		if e.Dest.Local() {
			s.table.Speaks(e.VNI, e.MAC, e.IP, s.router(e.VNI, e.IP))
		}
	case frame.EventNeighbourAged, frame.EventNeighbourDeleted:
		s.table.Silent(e.VNI, e.MAC, e.IP)
	}
}

// router reports whether a neighbour says that it is a router.
func (s *Speaker) router(vni frame.VNI, ip netip.Addr) bool {
	r := s.node.Neighbours(vni)
	if r == nil || !ip.Is6() {
		return false
	}
	e, ok := r.Table().Lookup(ip)
	return ok && e.Flags&arp.Router != 0
}

// settle says anew what is set of segments, their gateways, and all VRFs.
func (s *Speaker) settle(now time.Duration, vnis ...frame.VNI) {
	interfaces := s.node.Interfaces()
	s.table.SetLocals(s.locals())
	for _, vni := range vnis {
		s.settleSegment(now, vni, interfaces)
	}
	if s.seen.listing {
		return // once for all of them, at the end
	}
	vrfs := map[string][]*l3.Interface{}
	for _, i := range interfaces {
		vrfs[i.VRFName()] = append(vrfs[i.VRFName()], i)
	}
	for _, name := range s.table.VRFs() {
		if vrfs[name] == nil {
			s.table.DeleteVRF(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(vrfs)) {
		s.table.SetVRF(s.vrf(name, vrfs[name]))
	}
}

func (s *Speaker) settleAll(now time.Duration) {
	s.settle(now, slices.Sorted(maps.Keys(s.seen.members))...)
}

func (s *Speaker) settleSegment(now time.Duration, vni frame.VNI, interfaces []*l3.Interface) {
	var here *l3.Interface
	for _, i := range interfaces {
		if i.VNI() == vni {
			here = i
		}
	}
	var of l3.InterfaceConfig
	vrf := ""
	if here != nil {
		of, vrf = here.Config(), here.VRFName()
	}
	if here != nil && len(of.Addresses) == 0 {
		s.table.DeleteSegment(vni) // an L3VNI, or a TUN: nobody is bridged
	} else {
		s.table.SetSegment(now, s.segment(vni, vrf, of))
	}
	s.connect(vni, vrf, of)
}

// segment returns what is set of a segment with hosts.
func (s *Speaker) segment(vni frame.VNI, vrf string, of l3.InterfaceConfig) table.Segment {
	tunnel, vtep, ok := s.vtep(vni)
	x := table.Segment{VNI: vni, VTEP: vtep, Tunnel: tunnel, VRF: vrf}
	if len(of.Addresses) > 0 {
		g := table.Gateway{MACs: []frame.MAC{of.MAC}, Addresses: of.Addresses, Anycast: of.Anycast}
		if !of.VTEPMAC.IsZero() && of.VTEPMAC != of.MAC {
			g.MACs = append(g.MACs, of.VTEPMAC)
		}
		x.Gateways = []table.Gateway{g}
	}
	for _, c := range s.cfg.Segments {
		if c.VNI == vni {
			x.RD, x.Import, x.Export = rd(c.RD), targets(c.Import), targets(c.Export)
			x.Silent, x.NoBroadcast, x.NoUnknown = c.NoAdvertise, c.NoBroadcast, c.NoUnknown
		}
	}
	if !ok {
		x.Import = []route.Target{} // what peers say of its VNI is not for this tunnel
	}
	return x
}

// vrf returns what is set of a VRF with these interfaces. Its L3VNI is the lowest VNI of one without addresses, in a segment with a VTEP if
// one has it.
func (s *Speaker) vrf(name string, interfaces []*l3.Interface) table.VRF {
	x := table.VRF{Name: name}
	for _, i := range interfaces {
		if c := i.Config(); len(c.Addresses) == 0 && !c.MAC.IsZero() && x.VTEP.Bits() == 0 {
			if tunnel, a, ok := s.vtep(i.VNI()); ok && (x.L3VNI == 0 || a.Bits() != 0) {
				x.L3VNI, x.RouterMAC, x.VTEP, x.Tunnel = i.VNI(), c.MAC, a, tunnel
			}
		}
	}
	for _, c := range s.cfg.VRFs {
		if c.Name == name {
			x.RD, x.Import, x.Export, x.Accept = rd(c.RD), targets(c.Import), targets(c.Export), c.Accept
			x.NoHostRoutes, x.NoConnected, x.NoStatic = c.NoHostRoutes, c.NoConnected, c.NoStatic
		}
	}
	return x
}

// locals returns the addresses of all tunnels, sorted.
func (s *Speaker) locals() (list []route.Addr) {
	for _, t := range s.node.Tunnels() {
		for _, a := range t.Local() {
			list = append(list, route.AddrFrom(a))
		}
	}
	slices.SortFunc(list, func(a, b route.Addr) int { return a.Netip().Compare(b.Netip()) })
	return list
}

// vtep returns the name of our tunnel in a segment, the first in it that is VXLAN, and its address. ok is false if there are only others.
func (s *Speaker) vtep(vni frame.VNI) (tunnel string, a route.Addr, ok bool) {
	tunnels := s.node.Tunnels()
	ok = true
	for _, name := range s.seen.members[vni] {
		switch t := tunnels[name]; {
		case t == nil:
		case t.Type() != encap.TypeVXLAN:
			ok = false
		default:
			for _, a := range t.Local() {
				if !a.IsUnspecified() {
					return name, route.AddrFrom(a), true
				}
			}
			return name, route.AddrFrom(s.cfg.VTEP), true
		}
	}
	return "", route.Addr{}, ok
}

// connect notes the networks of a gateway.
func (s *Speaker) connect(vni frame.VNI, vrf string, of l3.InterfaceConfig) {
	var now []network
	for _, a := range of.Addresses {
		now = append(now, network{vrf, a.Masked()})
	}
	slices.SortFunc(now, func(a, b network) int { return cmp.Compare(a.prefix.String(), b.prefix.String()) })
	now = slices.Compact(now)
	was := s.seen.connected[vni]
	if slices.Equal(now, was) {
		return
	}
	for _, x := range now {
		s.table.Connected(x.vrf, x.prefix, 1)
	}
	for _, x := range was {
		s.table.Connected(x.vrf, x.prefix, -1)
	}
	s.seen.connected[vni] = now
}

// down forgets a segment.
func (s *Speaker) down(vni frame.VNI) {
	s.table.DeleteSegment(vni)
	s.connect(vni, "", l3.InterfaceConfig{})
	delete(s.seen.connected, vni)
}
