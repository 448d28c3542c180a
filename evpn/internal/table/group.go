package table

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// A group is hosts of a network on an Ethernet segment that are behind the same VTEPs. Their rows name it, so that when a VTEP leaves the
// segment only the rows of the group change, however many hosts it has (mass withdrawal, RFC 7432, section 8.2).
type group struct {
	nothing
	n     *net
	key   groupKey
	name  string
	port  string // ours on the segment, if frames may go there: then the hosts are at it
	hosts map[*host]struct{}
}

// A groupKey is the VTEP that says the hosts, and the VNI there; the zero value is all VTEPs that have the network.
type groupKey struct {
	vtep route.Addr
	far  frame.VNI
}

// join has a host be in the group of the claim that counts, if that is on an Ethernet segment.
func (h *host) join(t *Table) {
	var g *group
	if m := h.on(t); m != nil && h.absent && h.claimed {
		g = m.e.net(h.s).group(groupKey{})
	} else if best := h.best(); best != nil && !h.claimed && best.ESI.Shared() {
		var k groupKey
		n := t.ethernet(best.ESI).net(h.s)
		if n.apart {
			k.vtep = best.VTEP
			k.far, _ = label(best.Labels[0], h.s.VNI)
		}
		g = n.group(k)
	}
	if h.group == g {
		return
	}
	if was := h.group; was != nil {
		delete(was.hosts, h)
		t.touch(was)
	}
	if h.group = g; g != nil {
		g.hosts[h] = struct{}{}
		t.touch(g)
	}
}

func (n *net) group(k groupKey) *group {
	g := n.groups[k]
	if g == nil {
		g = &group{n: n, key: k, name: n.e.id.String(), port: n.port(), hosts: map[*host]struct{}{}}
		if k.vtep.Bits() != 0 {
			g.name += " " + k.vtep.String()
		}
		if k.far != 0 {
			g.name += fmt.Sprintf(" %d", k.far)
		}
		n.groups[k] = g
	}
	return g
}

// port returns that of ours on the segment, "" if frames may not go there.
func (n *net) port() string {
	if n.e.homed == nil || !n.e.homed.open(n.s.VNI) {
		return ""
	}
	return n.e.homed.Port
}

// reach has the hosts of a segment be where they are now: at our port, or at other VTEPs.
func (e *ethernet) reach(t *Table) {
	for _, n := range e.nets {
		port := n.port()
		for _, g := range n.groups {
			if g.port == port {
				continue
			}
			g.port = port
			t.touch(g)
			for h := range g.hosts {
				t.touch(h)
			}
		}
	}
}

// rows are the VTEPs to which frames for the hosts go. Where one VTEP at a time forwards, that is the one that says the hosts; when it has
// left the segment and only one other has it, that one (RFC 7432, section 14.1.1).
func (g *group) rows() []control.Row {
	if len(g.hosts) == 0 || g.port != "" {
		return nil
	}
	e, k := g.n.e, g.key
	if k.vtep.Bits() != 0 && e.has(k.vtep) {
		return []control.Row{g.row(k.vtep, k.far)}
	}
	var rows []control.Row
	for _, p := range sorted(g.n.paths) {
		if far, _ := label(p.Labels[0], g.n.s.VNI); e.has(p.VTEP) {
			rows = append(rows, g.row(p.VTEP, far))
		}
	}
	rows = slices.CompactFunc(rows, func(a, b control.Row) bool { return a.(control.Group).VTEP == b.(control.Group).VTEP })
	if e.single && len(rows) > 1 {
		return nil
	}
	return rows
}

func (g *group) row(vtep route.Addr, far frame.VNI) control.Row {
	return control.Group{VNI: g.n.s.VNI, Name: g.name, Tunnel: g.n.s.Tunnel, VTEP: netip.AddrPortFrom(vtep.Netip(), 0), FarVNI: far}
}

// sorted returns paths in the order of their VTEPs and labels.
func sorted(list []*path) []*path {
	return slices.SortedFunc(slices.Values(list), func(a, b *path) int {
		return cmp.Or(cmp.Compare(a.VTEP.Bits(), b.VTEP.Bits()), bytes.Compare(a.VTEP.Bytes(), b.VTEP.Bytes()), cmp.Compare(a.Labels[0], b.Labels[0]))
	})
}

func (g *group) routes(*Table) []route.Route { return nil }

// settled forgets a group without hosts.
func (g *group) settled(t *Table, _ time.Duration) {
	n := g.n
	if len(g.hosts) > 0 || n.groups[g.key] != g {
		return
	}
	delete(n.groups, g.key)
	if len(n.groups)+len(n.paths) == 0 {
		delete(n.e.nets, n.s)
		t.tidy(n.e)
	}
}

// join has a prefix follow the Ethernet segments that its host routes are on.
func (x *prefix) join(t *Table) {
	var now []*ethernet
	for _, p := range x.paths {
		if p.Kind == route.MACIP && p.ESI.Shared() {
			if e := t.ethernet(p.ESI); !slices.Contains(now, e) {
				now = append(now, e)
			}
		}
	}
	for _, e := range x.on {
		if !slices.Contains(now, e) {
			delete(e.routed, x)
			t.tidy(e)
		}
	}
	for _, e := range now {
		e.routed[x] = true
	}
	x.on = now
}

// gone reports whether the VTEP of a host route has left the Ethernet segment of the host.
func (x *prefix) gone(p *path) bool {
	if p.Kind != route.MACIP || !p.ESI.Shared() {
		return false
	}
	e := x.v.t.ethernets[p.ESI]
	return e == nil || !e.has(p.VTEP)
}

// ours reports whether the host of a host route is at a port of ours too.
func (x *prefix) ours(p *path) bool {
	e := x.v.t.ethernets[p.ESI]
	if e == nil || e.homed == nil {
		return false
	}
	for _, vni := range e.homed.VNIs {
		if s := x.v.t.segments[vni]; s != nil && s.VRF == x.v.Name && e.homed.open(vni) {
			return true
		}
	}
	return false
}
