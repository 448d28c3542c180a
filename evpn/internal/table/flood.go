package table

import (
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// Of the PMSI tunnel attribute.
const (
	ingressReplication = 6    // tunnel type (RFC 6514, section 5)
	noBroadcast        = 0x04 // flags (RFC 9574, section 4.1)
	noUnknown          = 0x02
)

// nothing is what most places have alike: no rows, and nothing to do when they are settled.
type nothing struct{ told []route.Key }

func (n *nothing) rows() []control.Row           { return nil }
func (n *nothing) was() *[]route.Key             { return &n.told }
func (n *nothing) settled(*Table, time.Duration) {}

// A flood is a VTEP in the flood list of a segment.
type flood struct {
	nothing
	s     *segment
	vtep  route.Addr
	paths []*path
	slot  slot // in segment.flooded
	late  latecomers
}

// useFlood adds a path to the flood list of a segment.
func (t *Table) useFlood(s *segment, p *path) (left string) {
	to := p.Tunnel.Netip()
	switch {
	case p.TunnelType != ingressReplication || !to.IsValid() || to.IsUnspecified() || to.IsMulticast() || to.IsLoopback() || to.IsLinkLocalUnicast() || to == broadcast || odd(to):
		return leftTunnel
	case t.own[p.Tunnel]:
		return leftOwn
	case p.Labels[0] != uint32(s.VNI):
		return leftLabel
	case s.VTEP.Bits() != p.Tunnel.Bits() && s.VTEP.Bits() != 0:
		return leftNextHop
	}
	f := s.floods[p.Tunnel]
	switch {
	case f == nil || len(f.paths) == 0:
		if !s.flooded.room(p.VTEP, t.cfg.MaxVTEPs, func(x *flood) { x.evict(t) }) {
			return leftFloodLimit
		}
	case len(f.paths) >= maxPaths:
		f.late.add(p)
		return leftFloodLimit
	}
	if f == nil {
		f = &flood{s: s, vtep: p.Tunnel}
		s.floods[p.Tunnel] = f
	}
	f.paths = append(f.paths, p)
	s.flooded.settle(&f.slot, f.paths, f)
	t.touch(f)
	return ""
}

// evict makes room for another VTEP.
func (f *flood) evict(t *Table) {
	was := f.paths
	f.paths, f.late = nil, latecomers{}
	f.s.flooded.remove(&f.slot)
	for _, p := range was {
		t.leaveOut(p, leftFloodLimit)
	}
	t.touch(f)
}

func (f *flood) rows() []control.Row {
	if len(f.paths) == 0 {
		return nil
	}
	r := control.Flood{VNI: f.s.VNI, VTEP: netip.AddrPortFrom(f.vtep.Netip(), 0), Tunnel: f.s.Tunnel, NoBroadcast: true, NoUnknown: true}
	for _, p := range f.paths {
		r.NoBroadcast = r.NoBroadcast && p.TunnelFlags&noBroadcast != 0
		r.NoUnknown = r.NoUnknown && p.TunnelFlags&noUnknown != 0
	}
	return []control.Row{r}
}

func (f *flood) routes(*Table) []route.Route { return nil }

func (f *flood) settled(*Table, time.Duration) {
	if len(f.paths) == 0 && f.s.floods[f.vtep] == f {
		delete(f.s.floods, f.vtep)
	}
}
