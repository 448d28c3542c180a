package model

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

const (
	classBroadcast = vswitch.Broadcast
	classMulticast = vswitch.Multicast
	classUnknown   = vswitch.UnknownUnicast
)

func count(f *vswitch.Flooded, class vswitch.Class) {
	switch class {
	case classBroadcast:
		f.Broadcast++
	case classMulticast:
		f.Multicast++
	default:
		f.Unknown++
	}
}

func onWire(src netip.Addr, payload []byte) string { return fmt.Sprintf("%v: %x", src, payload) }

// source learns a source MAC, or says why a frame may not have it.
func (g *golden) source(x *passage, src frame.MAC) frame.Reason {
	v, n := x.v, x.n
	e := v.fdb[src]
	tunnel := x.from.peer.IsValid()
	learn := !x.in.cfg.NoLearn
	switch {
	case e == nil:
		if learn && v.room(x, false) {
			v.fdb[src] = &gentry{at: x.from, origin: learned, seen: n.tick}
			v.learned++
			n.event("mac-learned %d %v %s", v.vni, src, g.name(x.from))
		}
	case e.filter:
		return frame.Filtered
	case e.at == x.from:
		if learn {
			e.seen = n.tick
		}
	case e.origin == learned, e.origin == control && !e.sticky && !tunnel && e.at.port != ownPort:
		// It moved. A control entry gives way to a host that is here.
		if learn && v.room(x, e.origin == learned) {
			n.event("mac-moved %d %v %s from %s pinned=%v", v.vni, src, g.name(x.from), g.name(e.at), e.origin != learned)
			*e = gentry{at: x.from, origin: learned, seen: n.tick}
			v.moved++
		}
	case e.at.port == ownPort:
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
	g.turn = turn
	for _, n := range g.nodes {
		n.tick = int(turn / time.Second)
		for _, v := range n.vsis {
			ageing := int(v.cfg.Ageing / time.Second)
			if v.cfg.Ageing == 0 {
				ageing = 300
			}
			for mac, e := range v.fdb {
				if ageing > 0 && e.origin == learned && n.tick-e.seen >= ageing {
					delete(v.fdb, mac)
					v.aged++
					n.event("mac-aged %d %v %s", v.vni, mac, g.name(e.at))
				}
			}
		}
	}
}

func (n *gnode) vsi(vni frame.VNI, cfg vswitch.VSIConfig) *gvsi {
	if n.vsis[vni] == nil {
		n.vsis[vni] = &gvsi{vni: vni, cfg: cfg, fdb: map[frame.MAC]*gentry{}}
	}
	return n.vsis[vni]
}

// attach makes a port a member; it reports whether it could, and whether the port is
// new to the switch.
func (g *golden) attach(n *gnode, v *gvsi, port, mtu int, tag uint32, cfg vswitch.AttachConfig) (ok, fresh bool) {
	p := n.ports[port]
	if p != nil && (p.tagged(tag) != nil || v.on(port) != nil) {
		return false, false
	}
	if p == nil {
		fresh = true
		p = &gport{id: port, mtu: mtu, keep: cfg.KeepOpen}
		n.ports[port] = p
		n.event("port-up %s", g.name(dest{port: port}))
	}
	a := &gatt{vsi: v, port: p, tag: tag, cfg: cfg}
	p.members = append(p.members, a)
	v.members = append(v.members, a)
	return true, fresh
}

// detach ends a membership and reports whether the port left the switch with it.
func (g *golden) detach(n *gnode, a *gatt) bool {
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
	delete(n.ports, a.port.id)
	return true
}

// leave takes a whole port out of its switch. cause is "" when it was asked for.
func (g *golden) leave(n *gnode, p *gport, cause string) {
	for _, a := range slices.Clone(p.members) {
		g.detach(n, a)
	}
	n.event("port-down %s %s", g.name(dest{port: p.id}), cause)
}
