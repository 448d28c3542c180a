package table

import (
	"bytes"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/election"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// An EthernetSegment is one that we have a port on.
type EthernetSegment struct {
	ESI          route.ESI
	SingleActive bool
	Election     route.Election
	Wait         time.Duration // from when we are there until we may forward
	Port         string
	VNIs         []frame.VNI  // of which the port is a member, sorted; one may be there several times
	Dests        []frame.Dest // of these members: those that take only some frames of the port, and others in a segment, have one of their own
	Up           bool         // the port is there
}

func equalEthernet(a, b *EthernetSegment) bool {
	return a.ESI == b.ESI && a.SingleActive == b.SingleActive && a.Election == b.Election && a.Wait == b.Wait && a.Port == b.Port &&
		a.Up == b.Up && slices.Equal(a.VNIs, b.VNIs) && slices.Equal(a.Dests, b.Dests)
}

// has reports whether one of the members has a Dest in a segment.
func (c *EthernetSegment) has(vni frame.VNI, at frame.Dest) bool {
	i, _ := slices.BinarySearch(c.VNIs, vni)
	for ; i < len(c.VNIs) && c.VNIs[i] == vni; i++ {
		if c.Dests[i] == at {
			return true
		}
	}
	return false
}

// A Role is what the member of a segment on an Ethernet segment does (RFC 7432, section 8.5; RFC 8365, section 8.3.1).
type Role struct {
	Blocked bool         // nothing comes in or goes out
	NoFlood bool         // floods of tunnels do not go there
	Shared  []netip.Addr // nor those of these VTEPs, which are on the Ethernet segment too
}

func (r *Role) equal(o *Role) bool {
	return r.Blocked == o.Blocked && r.NoFlood == o.NoFlood && slices.Equal(r.Shared, o.Shared)
}

// A homed is an Ethernet segment of ours. As a place it has the routes of types 1 and 4.
type homed struct {
	EthernetSegment
	nothing
	t       *Table
	e       *ethernet
	since   time.Duration // it is up
	waiting bool          // for others to say that they are there
	forward map[frame.VNI]bool
	roles   map[frame.VNI]Role // as set last
}

// SetEthernets says which Ethernet segments we have. Each has another ESI and another port.
func (t *Table) SetEthernets(now time.Duration, list []EthernetSegment) {
	for m := range t.homed {
		if !slices.ContainsFunc(list, func(c EthernetSegment) bool { return c.ESI == m.ESI }) {
			m.leave(now)
			m.free()
			m.Up, m.VNIs, m.Dests = false, nil, nil
			m.e.homed, t.anew = nil, true
			delete(t.homed, m)
			t.rejoinConfigured(now, m.Port)
			t.touch(m)
			t.stir(m.e)
		}
	}
	for i := range list {
		t.setEthernet(now, &list[i])
	}
}

func (t *Table) setEthernet(now time.Duration, c *EthernetSegment) {
	e := t.ethernet(c.ESI)
	m := e.homed
	if m == nil {
		m = &homed{t: t, e: e, roles: map[frame.VNI]Role{}}
		e.homed, t.anew = m, true
	} else if equalEthernet(&m.EthernetSegment, c) {
		return
	}
	moved := m.Port != c.Port || m.ESI != c.ESI || !slices.ContainsFunc(m.Dests, func(d frame.Dest) bool { return slices.Contains(c.Dests, d) })
	if moved {
		m.leave(now)
	}
	if m.Port != c.Port {
		m.free()
	}
	was := m.EthernetSegment
	m.EthernetSegment = *c
	if c.Up && (!was.Up || moved) {
		m.wait(now)
	}
	if t.homed[m] = true; was.Port != m.Port {
		t.rejoinConfigured(now, was.Port)
	}
	if was.Port != m.Port || was.Up != m.Up {
		t.rejoinConfigured(now, m.Port)
	}
	t.unport(m, was.Dests)
	for _, d := range m.Dests {
		t.ports[d] = m
	}
	if was.Up && !c.Up && !moved {
		m.depart(now)
	}
	for _, x := range [][2]*EthernetSegment{{&was, c}, {c, &was}} {
		for i, vni := range x[0].VNIs {
			if s := t.segments[vni]; s != nil && (moved || !x[1].has(vni, x[0].Dests[i])) {
				t.rejoin(now, s, x[0].Dests[i])
			}
		}
	}
	t.touch(m)
	t.stir(e)
}

// free has the port do nothing in particular.
func (m *homed) free() {
	for vni := range m.roles {
		if m.t.cfg.Role != nil {
			m.t.cfg.Role(vni, m.Port, Role{})
		}
	}
	clear(m.roles)
}

// leave says that the port is on the segment no more.
func (m *homed) leave(now time.Duration) {
	clear(m.forward)
	m.t.unport(m, m.Dests)
	for i, vni := range m.VNIs {
		if s := m.t.segments[vni]; s != nil {
			m.t.rejoin(now, s, m.Dests[i])
		}
	}
}

// unport says that members of m have these Dests no more.
func (t *Table) unport(m *homed, dests []frame.Dest) {
	for _, d := range dests {
		if t.ports[d] == m {
			delete(t.ports, d)
		}
	}
}

// rejoin has the hosts at a port say anew on which Ethernet segment they are.
func (t *Table) rejoin(now time.Duration, s *segment, at frame.Dest) {
	for _, h := range s.hosts {
		if h.here && h.dest == at {
			h.rejoin(t, now)
		}
	}
}

// rejoinConfigured is rejoin of configured hosts, which have the name of the port.
func (t *Table) rejoinConfigured(now time.Duration, port string) {
	for h := range t.configuredAt(port) {
		h.rejoin(t, now)
	}
}

func (h *host) rejoin(t *Table, now time.Duration) {
	if t.touch(h); !h.claimed && h.beside(t, h.best()) {
		t.Here(now, h.s.VNI, h.mac, h.dest, h.static)
	}
	h.contest(t, now)
}

// wait begins the time in which others say that they are there too. Until then we do not forward.
func (m *homed) wait(now time.Duration) { m.since, m.waiting = now, true }

// met says that peers are heard that we could not hear before.
func (t *Table) met(now time.Duration) {
	for m := range t.homed {
		if m.Up {
			m.wait(now)
			t.stir(m.e)
		}
	}
}

// awaited looks for Ethernet segments that have waited long enough.
func (t *Table) awaited(now time.Duration) {
	for m := range t.homed {
		if m.waiting && now-m.since >= m.Wait {
			m.waiting = false
			t.stir(m.e)
		}
	}
}

// on returns our Ethernet segment that the host's port is on, nil if none. A configured host is on that of its port even while that is not
// there: peers reach it by the other VTEPs.
func (h *host) on(t *Table) *homed {
	if h.static {
		port := h.port(t)
		for m := range t.homed {
			if m.Port == port {
				return m
			}
		}
		return nil
	}
	if m := t.ports[h.dest]; m != nil && m.has(h.s.VNI, h.dest) {
		return m
	}
	return nil
}

// beside reports whether a claim of a peer is on the Ethernet segment that the host is on here: then it is the same place.
func (h *host) beside(t *Table, p *path) bool {
	m := h.on(t)
	return m != nil && h.here && p != nil && p.ESI == m.ESI
}

// member reports whether the port is a member of a segment.
func (m *homed) member(vni frame.VNI) bool {
	_, ok := slices.BinarySearch(m.VNIs, vni)
	return ok
}

// open reports whether frames for hosts may go to the port.
func (m *homed) open(vni frame.VNI) bool {
	return m.Up && m.member(vni) && (!m.SingleActive || m.forward[vni])
}

// shut reports whether the port is there and blocked, since another VTEP forwards. That one says the configured hosts.
func (m *homed) shut(vni frame.VNI) bool { return m.Up && m.SingleActive && !m.forward[vni] }

// addr returns the VTEP by which we take part in the election: that of the first segment.
func (m *homed) addr() route.Addr {
	for _, vni := range m.VNIs {
		if s := m.t.segments[vni]; s != nil && s.VTEP.Bits() != 0 {
			return s.VTEP
		}
	}
	return route.Addr{}
}

// candidates are those of the election, with us.
func (m *homed) candidates() []election.Candidate {
	list := []election.Candidate{{Addr: m.addr(), Election: m.Election}}
	for _, p := range m.e.rivals {
		list = append(list, election.Candidate{Addr: p.IP, Election: p.Communities.Election()})
	}
	return election.Sort(list)
}

// others returns the other VTEPs on the segment.
func (m *homed) others() (list []netip.Addr) {
	for _, p := range m.e.rivals {
		list = append(list, p.NextHop.Netip())
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}

// elect finds out for which networks we forward, and tells the switch.
func (m *homed) elect() {
	us, list, others := m.addr(), m.candidates(), m.others()
	m.forward = map[frame.VNI]bool{}
	roles := map[frame.VNI]Role{}
	for vni, s := range m.t.segments { // in which the port may be a member at any time
		if s.VTEP.Bits() == 0 {
			continue // a segment without a tunnel
		}
		m.forward[vni] = m.Up && !m.waiting && m.member(vni) && election.Elect(m.ESI, vni, list) == us
		if m.SingleActive {
			roles[vni] = Role{Blocked: !m.forward[vni]}
		} else {
			roles[vni] = Role{NoFlood: !m.forward[vni], Shared: others}
		}
	}
	for vni := range m.roles {
		if _, ok := roles[vni]; !ok {
			roles[vni] = Role{}
		}
	}
	changed := false
	for vni, r := range roles {
		if was, ok := m.roles[vni]; ok && was.equal(&r) {
			continue
		}
		changed = true
		if m.roles[vni] = r; m.t.cfg.Role != nil {
			m.t.cfg.Role(vni, m.Port, r)
		}
		if m.t.segments[vni] == nil {
			delete(m.roles, vni)
		}
	}
	if changed {
		for h := range m.t.configuredAt(m.Port) {
			m.t.touch(h)
		}
	}
}

const maxTargets = 100 // of a route of type 1: a message has room for them

// routes are type 4, and type 1 about the segment and about each network, as long as the port is there.
func (m *homed) routes(t *Table) (list []route.Route) {
	us := m.addr()
	if !m.Up || us.Bits() == 0 {
		return nil
	}
	rd := t.rd(m.ESI)
	list = append(list, route.Route{Key: route.Key{Kind: route.Segment, RD: rd, Segment: m.ESI, IP: us}, NextHop: us,
		Communities: communities(nil, route.ESImport(m.ESI), m.Election.Community())})
	var targets []route.Target
	for _, vni := range slices.Compact(slices.Clone(m.VNIs)) {
		s := t.segments[vni]
		if s == nil || s.Silent || s.VTEP.Bits() == 0 {
			continue
		}
		own := t.exports(s.Export, vni)
		r := route.Route{Key: route.Key{Kind: route.AutoDiscovery, RD: t.rdOf(s), Segment: m.ESI}, NumLabels: 1, NextHop: s.VTEP, Communities: communities(own)}
		r.Labels[0] = uint32(vni)
		list = append(list, r)
		targets = union(targets, own)
	}
	for i, part := range slices.Collect(slices.Chunk(targets, maxTargets)) {
		r := route.Route{Key: route.Key{Kind: route.AutoDiscovery, RD: rd, Tag: route.AllTags, Segment: m.ESI}, NumLabels: 1, NextHop: us,
			Communities: communities(part, route.ESILabel(m.SingleActive))}
		if i > 0 {
			r.RD = t.rd(piece{m.ESI, i})
		}
		list = append(list, r)
	}
	return list
}

// A piece is one of several routes that say the route targets of a segment (RFC 7432, section 8.2.1), from the second on.
type piece struct {
	esi route.ESI
	i   int
}

// Ethernets returns what is known of Ethernet segments, by ESI.
func (t *Table) Ethernets() (list []Ethernet) {
	for _, e := range t.ethernets {
		x := Ethernet{ESI: e.id, SingleActive: e.single}
		for a := range e.vteps {
			if e.has(a) {
				x.VTEPs = append(x.VTEPs, a.Netip())
			}
		}
		slices.SortFunc(x.VTEPs, netip.Addr.Compare)
		for _, n := range e.nets {
			for _, g := range n.groups {
				x.Hosts += len(g.hosts)
			}
		}
		if m := e.homed; m != nil {
			x.Port, x.Up, x.Waiting, x.SingleActive = m.Port, m.Up, m.Up && m.waiting, m.SingleActive
			cs := m.candidates()
			x.Algorithm = election.Algorithm(cs)
			for _, c := range cs {
				if c.Addr.Bits() != 0 {
					x.Candidates = append(x.Candidates, c.Addr.Netip())
				}
			}
			for _, vni := range slices.Compact(slices.Clone(m.VNIs)) {
				x.Networks = append(x.Networks, EthernetNetwork{vni, m.forward[vni]})
			}
		}
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b Ethernet) int { return bytes.Compare(a.ESI[:], b.ESI[:]) })
	return list
}

// An Ethernet is what is known of an Ethernet segment.
type Ethernet struct {
	ESI          route.ESI
	SingleActive bool
	VTEPs        []netip.Addr // others that have it
	Hosts        int          // MACs of others on it
	Port         string       // ours, "" if we do not have it
	Up           bool
	Waiting      bool // we are there, and not in the election yet
	Algorithm    uint8
	Candidates   []netip.Addr // of the election, with us
	Networks     []EthernetNetwork
}

// EthernetNetwork is a segment of whose frames we are the designated forwarder, or not.
type EthernetNetwork struct {
	VNI     frame.VNI
	Forward bool
}
