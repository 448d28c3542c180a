package table

import (
	"bytes"
	"slices"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// An ethernet is an Ethernet segment: links of several VTEPs to the same hosts (RFC 7432, section 5). A VTEP has it as long as it says so by
// a route of type 1 with all tags; where that is gone, nothing is sent to it for any of the hosts (section 8.2).
type ethernet struct {
	id     route.ESI
	whole  []*path // of type 1, about the segment
	nets   map[*segment]*net
	rivals []*path // of type 4, if homed
	homed  *homed  // ours, nil = we do not have it
	single bool    // one VTEP at a time forwards (single-active)

	vteps  map[route.Addr]int // paths of type 1
	slot   slot               // in Table.far
	routed map[*prefix]bool   // host routes that depend on who has it
}

// A net is a network on an Ethernet segment.
type net struct {
	e      *ethernet
	s      *segment
	paths  []*path // of type 1: these VTEPs take frames for any of its hosts (aliasing, RFC 7432, section 8.4)
	groups map[groupKey]*group
	apart  bool // the hosts of each VTEP are a group of their own
}

func (t *Table) ethernet(id route.ESI) *ethernet {
	e := t.ethernets[id]
	if e == nil {
		e = &ethernet{id: id, nets: map[*segment]*net{}, vteps: map[route.Addr]int{}, routed: map[*prefix]bool{}}
		t.ethernets[id] = e
	}
	return e
}

func (e *ethernet) net(s *segment) *net {
	n := e.nets[s]
	if n == nil {
		n = &net{e: e, s: s, groups: map[groupKey]*group{}, apart: true}
		e.nets[s] = n
	}
	return n
}

// stir has an Ethernet segment looked at by the next Flush.
func (t *Table) stir(e *ethernet) { t.stirred[e] = struct{}{} }

// has reports whether a VTEP has the segment.
func (e *ethernet) has(vtep route.Addr) bool {
	return slices.ContainsFunc(e.whole, func(p *path) bool { return p.VTEP == vtep })
}

// useWhole adds a path of type 1 about a segment, useNet one about a network of it.
func (t *Table) useWhole(p *path) (left string) {
	if _, ok := p.Communities.ESILabel(); !ok {
		return leftESILabel
	}
	e, ok := t.take(p)
	if !ok {
		return leftESLimit
	}
	if e.whole, ok = t.fit(e, e.whole, p); !ok {
		return leftESLimit
	}
	return ""
}

func (t *Table) useNet(s *segment, p *path) (left string) {
	if p.Tag != 0 {
		return leftTag
	}
	if _, ok := label(p.Labels[0], s.VNI); !ok && p.Labels[0] != 0 || p.NumLabels == 0 { // 0, as FRR 8.4 reflects it, is our VNI
		return leftLabel
	}
	if s.VTEP.Bits() != p.NextHop.Bits() && s.VTEP.Bits() != 0 {
		return leftNextHop
	}
	e, ok := t.take(p)
	if !ok {
		return leftESLimit
	}
	n := e.net(s)
	if n.paths, ok = t.fit(e, n.paths, p); !ok {
		return leftESLimit
	}
	return ""
}

// useRival adds a path of type 4 to a segment of ours.
func (t *Table) useRival(p *path) (left string) {
	e := t.ethernets[p.Segment]
	switch {
	case e == nil || e.homed == nil:
		return leftTarget
	case !p.Communities.ESImports(p.Segment):
		return leftESImport
	case t.own[p.IP]:
		return leftOwn
	}
	var ok bool
	if e.rivals, ok = t.fitInto(e.rivals, p, maxRivals); !ok {
		return leftESLimit
	}
	t.stir(e)
	return ""
}

const maxRivals = 64 // VTEPs in an election

// take returns the segment of a path of type 1, if there is room for it.
func (t *Table) take(p *path) (*ethernet, bool) {
	if e := t.ethernets[p.Segment]; e == nil || e.slot.at == nil {
		if !t.far.room(p.VTEP, t.cfg.MaxEthernets, func(x *ethernet) { x.evict(t) }) {
			return nil, false
		}
		e = t.ethernet(p.Segment)
		e.slot = t.far.add(p.VTEP, e)
	}
	return t.ethernets[p.Segment], true
}

// fit adds a path of type 1 to a list.
func (t *Table) fit(e *ethernet, list []*path, p *path) ([]*path, bool) {
	list, ok := t.fitInto(list, p, maxPaths)
	if ok {
		e.vteps[p.VTEP]++
	}
	t.settle(e)
	t.stir(e)
	return list, ok
}

// fitInto adds a path to a list. If that is full, one of the VTEP with the most paths makes room for one of a VTEP with fewer.
func (t *Table) fitInto(list []*path, p *path, limit int) ([]*path, bool) {
	if len(list) < limit {
		return append(list, p), true
	}
	count := map[route.Addr]int{}
	last := list[0]
	for _, x := range list {
		if count[x.VTEP]++; count[x.VTEP] >= count[last.VTEP] {
			last = x
		}
	}
	if count[p.VTEP]+1 >= count[last.VTEP] {
		return list, false
	}
	list = append(remove(list, last), p)
	if last.Kind == route.AutoDiscovery {
		t.ethernets[last.Segment].less(last)
	}
	t.leaveOut(last, leftESLimit)
	return list, true
}

func (e *ethernet) less(p *path) {
	if e.vteps[p.VTEP]--; e.vteps[p.VTEP] == 0 {
		delete(e.vteps, p.VTEP)
	}
}

// settle has a segment count as one of a VTEP that has it.
func (t *Table) settle(e *ethernet) {
	if e.slot.at == nil || e.vteps[e.slot.vtep] > 0 {
		return
	}
	t.far.remove(&e.slot)
	if len(e.vteps) == 0 {
		t.roomy = t.far.relieve(t.cfg.MaxEthernets) || t.roomy
		return
	}
	first := route.Addr{}
	for a := range e.vteps {
		if first.Bits() == 0 || bytes.Compare(a.Bytes(), first.Bytes()) < 0 {
			first = a
		}
	}
	e.slot = t.far.add(first, e)
}

// unuseEthernet is unuse of types 1 and 4.
func (t *Table) unuseEthernet(p *path) {
	e := t.ethernets[p.Segment]
	if e == nil {
		return
	}
	drop := func(list []*path) []*path {
		n := len(list)
		if list = remove(list, p); len(list) < n && p.Kind == route.AutoDiscovery {
			e.less(p)
		}
		return list
	}
	e.rivals, e.whole = drop(e.rivals), drop(e.whole)
	if p.Kind == route.AutoDiscovery && p.Tag != route.AllTags {
		t.importers(p.Communities, func(s *segment) {
			if n := e.nets[s]; n != nil {
				n.paths = drop(n.paths)
			}
		}, func(*vrf) {})
	}
	t.settle(e)
	t.stir(e)
}

// usesEthernet is uses of types 1 and 4.
func (t *Table) usesEthernet(p *path) (is bool) {
	e := t.ethernets[p.Segment]
	if e == nil {
		return false
	}
	for _, n := range e.nets {
		is = is || slices.Contains(n.paths, p)
	}
	return is || slices.Contains(e.whole, p) || slices.Contains(e.rivals, p)
}

// evict makes room for the segment of another VTEP.
func (e *ethernet) evict(t *Table) {
	was := e.whole
	for _, n := range e.nets {
		was, n.paths = append(was, n.paths...), nil
	}
	e.whole = nil
	clear(e.vteps)
	t.far.remove(&e.slot)
	for _, p := range was {
		if p.left == "" {
			t.leaveOut(p, leftESLimit)
		}
	}
	t.stir(e)
}

// emptied takes all paths away, before they are imported anew.
func (e *ethernet) emptied() {
	e.whole, e.rivals, e.slot = nil, nil, slot{}
	clear(e.vteps)
	for _, n := range e.nets {
		n.paths = nil
	}
}

// refresh has done what follows of a change: who has the segment, and who takes part in the election.
func (e *ethernet) refresh(t *Table) {
	e.single = slices.ContainsFunc(e.whole, func(p *path) bool { single, _ := p.Communities.ESILabel(); return single })
	for s, n := range e.nets {
		n.refresh(t)
		if len(n.paths) == 0 && len(n.groups) == 0 {
			delete(e.nets, s)
		}
	}
	for x := range e.routed {
		t.touch(x)
	}
	t.tidy(e)
}

func (n *net) refresh(t *Table) {
	apart := n.e.single || !slices.ContainsFunc(n.paths, func(p *path) bool { return n.e.has(p.VTEP) })
	for _, g := range n.groups {
		if t.touch(g); apart != n.apart {
			for h := range g.hosts {
				t.touch(h)
			}
		}
	}
	n.apart = apart
}

// tidy forgets a segment that nobody has.
func (t *Table) tidy(e *ethernet) {
	if t.ethernets[e.id] == e && e.homed == nil && len(e.whole)+len(e.rivals)+len(e.nets)+len(e.routed) == 0 {
		delete(t.ethernets, e.id)
	}
}
