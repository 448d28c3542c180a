package table

import (
	"cmp"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// Segment is what is set of a segment.
type Segment struct {
	VNI         frame.VNI
	VTEP        route.Addr     // ours in the segment
	Tunnel      string         // its name, which rows have: the first of the node may be another one
	RD          route.RD       // zero = the router ID and a number
	Import      []route.Target // nil = any AS with the VNI
	Export      []route.Target // nil = our AS and the VNI
	NoBroadcast bool           // peers send us no broadcast and multicast (RFC 9574, flag BM)
	NoUnknown   bool           // nor unknown unicast (flag U)
	Silent      bool           // we say nothing of it
	VRF         string         // of its gateway, "" = none
	Gateways    []Gateway
}

// A Gateway is an interface of the switch itself on a segment.
type Gateway struct {
	MACs      []frame.MAC
	Addresses []netip.Prefix
	Anycast   bool // others have it too
}

// VRF is what is set of a VRF.
type VRF struct {
	Name         string
	L3VNI        frame.VNI // 0 = only bridged and asymmetric
	RouterMAC    frame.MAC // ours on the L3VNI
	VTEP         route.Addr
	Tunnel       string // as in Segment
	RD           route.RD
	Import       []route.Target // nil = any AS with the L3VNI
	Export       []route.Target // nil = our AS and the L3VNI
	NoHostRoutes bool           // of hosts of peers: packets go to their segment (asymmetric IRB)
	NoConnected  bool           // we say nothing of networks of gateways
	NoStatic     bool           // nor of other routes
	Accept       []netip.Prefix // of peers: prefixes inside one of these; nil = all
}

type segment struct {
	Segment
	hosts   map[frame.MAC]*host
	far     shared[*host] // those that peers claim
	floods  map[route.Addr]*flood
	flooded shared[*flood] // VTEPs in the flood list

	own     *ownFlood
	gateway *gateway
}

type vrf struct {
	VRF
	t        *Table
	prefixes map[netip.Prefix]*prefix
	own      map[netip.Addr]bool // addresses of our gateways
	networks []network           // of our gateways, smaller ones first
	far      shared[*prefix]     // prefixes of peers
}

// A network is that of a gateway's address.
type network struct {
	prefix netip.Prefix
	vni    frame.VNI
}

// SetSegment adds a segment, or changes it. What is here of it stays.
func (t *Table) SetSegment(now time.Duration, c Segment) {
	s := t.segments[c.VNI]
	fresh := s == nil
	switch {
	case fresh:
		s = &segment{hosts: map[frame.MAC]*host{}, floods: map[route.Addr]*flood{}}
		s.own, s.gateway = &ownFlood{s: s}, &gateway{s: s}
		t.segments[c.VNI] = s
		t.rd(c.VNI)
	case reflect.DeepEqual(s.Segment, c):
		return
	}
	s.Segment = c
	t.changed()
	t.touchSegment(s)
	if fresh {
		for mac := range t.configured[c.VNI] {
			t.configure(now, s, mac)
		}
	}
}

// SetLocals says which addresses our tunnels have, sorted, also those that are nowhere the VTEP.
func (t *Table) SetLocals(list []route.Addr) {
	if !slices.Equal(list, t.tunnels) {
		t.tunnels = list
		t.changed()
	}
}

// touchSegment has everything said anew that depends on the settings of a segment.
func (t *Table) touchSegment(s *segment) {
	t.touch(s.own)
	t.touch(s.gateway)
	for m := range t.homed {
		t.touch(m)
		t.stir(m.e)
	}
	for _, h := range s.hosts {
		t.touch(h)
	}
}

// DeleteSegment forgets a segment with all that is here of it. Its rows go, and its routes are withdrawn.
func (t *Table) DeleteSegment(vni frame.VNI) {
	s := t.segments[vni]
	if s == nil {
		return
	}
	delete(t.segments, vni)
	for _, h := range s.hosts {
		*h = host{s: s, mac: h.mac, group: h.group, told: h.told, held: h.held, heldIn: h.heldIn}
		delete(t.resting, h)
		delete(t.frozen, h)
	}
	for _, f := range s.floods {
		f.paths, f.late = nil, latecomers{}
	}
	s.VTEP, s.Gateways = route.Addr{}, nil
	t.touchSegment(s)
	for _, f := range s.floods {
		t.touch(f)
	}
	t.changed()
}

// Segments returns the VNIs there are.
func (t *Table) Segments() (list []frame.VNI) {
	for v := range t.segments {
		list = append(list, v)
	}
	slices.Sort(list)
	return list
}

// SetVRF adds a VRF, or changes it.
func (t *Table) SetVRF(c VRF) {
	v := t.vrfs[c.Name]
	switch {
	case v == nil:
		v = &vrf{t: t, prefixes: map[netip.Prefix]*prefix{}}
		t.vrfs[c.Name] = v
		t.rd(c.Name)
		for p, n := range t.locals[c.Name] {
			v.at(p).local = n
		}
	case reflect.DeepEqual(v.VRF, c):
		return
	}
	v.VRF = c
	t.changed()
	t.touchVRF(v)
}

func (t *Table) touchVRF(v *vrf) {
	for _, p := range v.prefixes {
		t.touch(p)
	}
	for _, s := range t.segments {
		if s.VRF == v.Name {
			t.touchSegment(s) // their second label
		}
	}
}

// VRFs returns the names there are.
func (t *Table) VRFs() []string { return slices.Sorted(maps.Keys(t.vrfs)) }

// DeleteVRF forgets a VRF.
func (t *Table) DeleteVRF(name string) {
	v := t.vrfs[name]
	if v == nil {
		return
	}
	for _, p := range v.prefixes {
		p.paths, p.late, p.local = nil, latecomers{}, local{}
	}
	t.touchVRF(v)
	delete(t.vrfs, name)
	t.changed()
}

// changed finds out anew who imports what, and has all routes of peers imported anew. Until then places keep paths to which importers may
// lead no more; again empties them.
func (t *Table) changed() {
	t.anew = true
	clear(t.imports)
	clear(t.vrfsOf)
	clear(t.byL3VNI)
	clear(t.own)
	for _, a := range t.tunnels {
		t.own[a] = true
	}
	for _, v := range t.vrfs {
		v.own, v.networks = map[netip.Addr]bool{}, nil
		t.own[v.VTEP] = true
	}
	for _, s := range t.segments {
		t.own[s.VTEP] = true
		for _, x := range s.Import {
			t.imports[x] = append(t.imports[x], s)
		}
		if v := t.vrfs[s.VRF]; v != nil {
			for _, g := range s.Gateways {
				for _, a := range g.Addresses {
					v.own[a.Addr()] = true
					v.networks = append(v.networks, network{a, s.VNI})
				}
			}
		}
	}
	delete(t.own, route.Addr{})
	t.renumber()
	for _, v := range t.vrfs {
		slices.SortFunc(v.networks, func(a, b network) int { return cmp.Or(b.prefix.Bits()-a.prefix.Bits(), cmp.Compare(a.vni, b.vni)) })
		if v.L3VNI == 0 {
			continue
		}
		if v.Import == nil {
			t.byL3VNI[v.L3VNI] = v
		}
		for _, x := range v.Import {
			t.vrfsOf[x] = append(t.vrfsOf[x], v)
		}
	}
}

// importers calls f and g once for each segment and each VRF that imports routes with these communities.
func (t *Table) importers(c route.Communities, f func(*segment), g func(*vrf)) {
	var seg [4]*segment
	var vrf [4]*vrf
	segs, vrfs := seg[:0], vrf[:0]
	for x := range c.Targets() {
		if vni, ok := x.VNI(); ok {
			if s := t.segments[vni]; s != nil && s.Import == nil && !slices.Contains(segs, s) {
				segs = append(segs, s)
			}
			if v := t.byL3VNI[vni]; v != nil && !slices.Contains(vrfs, v) {
				vrfs = append(vrfs, v)
			}
		}
		for _, s := range t.imports[x] {
			if !slices.Contains(segs, s) {
				segs = append(segs, s)
			}
		}
		for _, v := range t.vrfsOf[x] {
			if !slices.Contains(vrfs, v) {
				vrfs = append(vrfs, v)
			}
		}
	}
	for _, s := range segs {
		f(s)
	}
	for _, v := range vrfs {
		g(v)
	}
}

// derived returns the route target of our AS and a VNI. Behind an AS of four bytes only 16 bits are left, so that a larger VNI has the
// lower half of the AS, as in FRR.
func (t *Table) derived(vni frame.VNI) route.Target {
	n := uint32(vni)
	if t.cfg.RFC8365 {
		n |= route.VXLANTarget
	}
	x, err := route.TargetFrom(t.cfg.AS, n)
	if err != nil {
		x, _ = route.TargetFrom(t.cfg.AS&0xffff, n)
	}
	return x
}

func (t *Table) exports(list []route.Target, vni frame.VNI) []route.Target {
	if list != nil {
		return list
	}
	return []route.Target{t.derived(vni)}
}
