package fuzz

import (
	"maps"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

func count(f *vswitch.Flooded, class vswitch.Class) {
	switch class {
	case vswitch.Broadcast:
		f.Broadcast++
	case vswitch.Multicast:
		f.Multicast++
	default:
		f.Unknown++
	}
}

// source learns a source MAC, or says why a frame may not have it.
func (g *golden) source(x *passage, src frame.MAC) frame.Reason {
	v := x.v
	e := v.fdb[src]
	tunnel := x.from.peer.IsValid()
	learn := !x.in.cfg.NoLearn && !v.cfg.NoLearn
	switch {
	case e == nil:
		if learn && v.room(x, false) {
			v.fdb[src] = &gentry{at: x.from, origin: learned, seen: g.tick}
			v.learned++
			g.event("mac-learned %d %v %s", v.vni, src, x.from)
		}
	case e.filter:
		return frame.Filtered
	case e.at == x.from:
		if learn {
			e.seen = g.tick
		}
	case e.origin == learned, e.origin == control && !e.sticky && !tunnel && e.at.port != noPort:
		// It moved. A control entry gives way to a host that is here.
		if learn && v.room(x, e.origin == learned) {
			g.event("mac-moved %d %v %s from %s pinned=%v", v.vni, src, x.from, e.at, e.origin != learned)
			*e = gentry{at: x.from, origin: learned, seen: g.tick}
			v.moved++
		}
	case e.at.port == noPort:
		if !(e.anycast && tunnel) {
			return frame.OwnMAC
		}
	case e.origin == control && !e.sticky:
		// Nothing from a tunnel moves it.
	case !v.cfg.ForwardPinned:
		return frame.MACPinned
	}
	return 0
}

// room says whether one more MAC may be learned where x came in.
func (v *gvsi) room(x *passage, moving bool) bool {
	all, here := 0, 0
	for _, e := range v.fdb {
		if e.origin == learned {
			all++
			if e.at == x.from {
				here++
			}
		}
	}
	limit := v.cfg.MaxMACs
	if limit == 0 {
		limit = 8192
	}
	if most := x.in.cfg.MaxMACs; most > 0 && here >= most || !moving && all >= limit {
		v.full++
		return false
	}
	return true
}

// set is fdb.Table.Set.
func (v *gvsi) set(mac frame.MAC, at dest, f fdb.Flags) error {
	e := v.fdb[mac]
	if f&fdb.Control != 0 && f&fdb.Override == 0 && e != nil {
		switch {
		case e.origin == learned && !e.at.peer.IsValid():
			return fdb.ErrLocal
		case e.origin == static:
			return fdb.ErrStatic
		}
	}
	now := &gentry{at: at, origin: static, sticky: f&fdb.Sticky != 0, filter: f&fdb.Filter != 0, anycast: f&fdb.Anycast != 0}
	if f&fdb.Control != 0 {
		now.origin = control
	}
	v.fdb[mac] = now
	return nil
}

// pass lets time go by. The housekeeping turns ten times a second; the switch's
// clock counts whole seconds.
func (g *golden) pass(since time.Duration) {
	turn := since.Truncate(100 * time.Millisecond)
	if turn == g.turn {
		return
	}
	g.turn, g.tick = turn, int(turn/time.Second)
	for _, v := range g.vsis {
		ageing := int(v.cfg.Ageing / time.Second)
		if v.cfg.Ageing == 0 {
			ageing = 300
		}
		for mac, e := range v.fdb {
			if ageing > 0 && e.origin == learned && g.tick-e.seen >= ageing {
				delete(v.fdb, mac)
				v.aged++
				g.event("mac-aged %d %v %s", v.vni, mac, e.at)
			}
		}
	}
}

// flush forgets what is learned at some places, of a port or, for noPort, of all.
func (g *golden) flush(vs []*gvsi, port int, name string, at func(d dest) bool) {
	for _, v := range vs {
		if port == noPort || v.on(port) != nil {
			g.event("flushed %d %s", v.vni, name)
		}
		maps.DeleteFunc(v.fdb, func(_ frame.MAC, e *gentry) bool { return e.origin == learned && at(e.at) })
	}
}

// attach makes a port a member; it reports whether it could, and whether the port is
// new to the switch.
func (g *golden) attach(v *gvsi, port, mtu int, tag uint32, cfg vswitch.AttachConfig) (ok, fresh bool) {
	p := g.ports[port]
	if p != nil && (p.tagged(tag) != nil || v.on(port) != nil) {
		return false, false
	}
	if p == nil {
		fresh = true
		p = &gport{id: port, mtu: mtu, keep: cfg.KeepOpen}
		g.ports[port] = p
		g.event("port-up %s", portName(port))
	}
	a := &gatt{vsi: v, port: p, tag: tag, cfg: cfg}
	p.members = append(p.members, a)
	v.members = append(v.members, a)
	g.event("attached %d %s", v.vni, portName(port))
	return true, fresh
}

// detach ends a membership and reports whether the port left the switch with it.
func (g *golden) detach(a *gatt) bool {
	g.event("detached %d %s", a.vsi.vni, portName(a.port.id))
	mine := func(m *gatt) bool { return m == a }
	a.vsi.members = slices.DeleteFunc(a.vsi.members, mine)
	a.port.members = slices.DeleteFunc(a.port.members, mine)
	for mac, e := range a.vsi.fdb {
		if e.at.port == a.port.id && !e.filter {
			delete(a.vsi.fdb, mac)
		}
	}
	if len(a.port.members) > 0 {
		return false
	}
	delete(g.ports, a.port.id)
	return true
}

// leave takes a whole port out of its switch. cause is "" when it was asked for.
func (g *golden) leave(p *gport, cause string) {
	for _, a := range slices.Clone(p.members) {
		g.detach(a)
	}
	g.event("port-down %s %s", portName(p.id), cause)
	if p.id == farPort && !(cause == "" && p.keep) {
		g.listening = false
		clear(g.added)
		clear(g.flooded)
	}
}
