package fuzz

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A passage is one frame inside one switch.
type passage struct {
	in   *gatt // nil for the switch's own frames
	v    *gvsi
	from dest
	b    []byte
	t    *tally // of the port it came in on
}

func etherType(b []byte) uint16 { return binary.BigEndian.Uint16(b[12:]) }

// fromHost is a frame on a local port.
func (g *golden) fromHost(p *gport, b []byte) {
	p.rx++
	tag := uint32(0)
	if len(b) >= 18 && etherType(b) == 0x8100 {
		tag = uint32(binary.BigEndian.Uint16(b[14:]) & 0xfff)
		b = append(append([]byte(nil), b[:12]...), b[16:]...)
	}
	a := p.tagged(tag)
	if a == nil {
		p.rxDrops[frame.UnknownVLAN]++
		return
	}
	g.bridge(passage{in: a, v: a.vsi, from: dest{port: p.id}, b: b, t: &p.tally})
}

// fromWire is a datagram at the VTEP (RFC 7348, section 5).
func (g *golden) fromWire(src netip.Addr, payload []byte) {
	p := g.ports[farPort]
	p.rx++
	var a *gatt // of the VNI that the header names, whatever else is wrong
	if len(payload) >= 8 && payload[0]&0x08 != 0 {
		a = p.tagged(binary.BigEndian.Uint32(payload[4:]) >> 8)
	}
	drop := func(r frame.Reason) {
		p.rxDrops[r]++
		if a != nil {
			a.vsi.drops[r]++
		}
	}
	if slices.Contains(g.addrs, src) {
		drop(frame.OwnAddress)
		return
	}
	if g.listedOnly && !g.listed(src) {
		drop(frame.UnknownPeer)
		return
	}
	if len(payload) < 8 {
		drop(frame.Short)
		return
	}
	if payload[0]&0x08 == 0 {
		drop(frame.NoVNIFlag)
		return
	}
	if a == nil {
		drop(frame.UnknownVNI)
		return
	}
	g.bridge(passage{in: a, v: a.vsi, from: dest{farPort, src}, b: payload[8:], t: &p.tally})
}

// inject is a frame the switch itself sends.
func (g *golden) inject(vni frame.VNI, b []byte) {
	g.own.rx++
	v := g.vsis[vni]
	if v == nil {
		g.own.rxDrops[frame.UnknownVNI]++
		return
	}
	g.bridge(passage{v: v, from: dest{port: noPort}, b: b, t: &g.own})
}

func (x *passage) drop(r frame.Reason) {
	x.t.rxDrops[r]++
	x.v.drops[r]++
}

// dropOut is a copy that does not leave a port.
func (x *passage) dropOut(a *gatt, r frame.Reason) {
	a.port.txDrops[r]++
	x.v.drops[r]++
}

// bridge is everything between the way in and the way out.
func (g *golden) bridge(x passage) {
	if len(x.b) < 14 {
		x.drop(frame.Short)
		return
	}
	dst, src := frame.MAC(x.b[:6]), frame.MAC(x.b[6:12])
	if src[0]&1 != 0 || src == (frame.MAC{}) {
		x.drop(frame.BadSourceMAC)
		return
	}
	if t := etherType(x.b); t == 0x8100 || t == 0x88a8 {
		x.drop(frame.InnerVLAN)
		return
	}
	if x.in != nil && blocked(&x.in.cfg) {
		x.drop(frame.Blocked)
		return
	}
	if x.in != nil {
		if r := g.source(&x, src); r != 0 {
			x.drop(r)
			return
		}
	}
	if reserved := [5]byte(dst[:5]) == [5]byte{0x01, 0x80, 0xc2, 0, 0} && dst[5] < 0x10; reserved && !x.v.cfg.ForwardBridgeGroup {
		x.drop(frame.ReservedMAC)
		return
	}
	e := x.v.fdb[dst]
	if e == nil {
		g.flood(x, dst)
		return
	}
	switch {
	case e.filter:
		x.drop(frame.Filtered)
		return
	case e.at.port == noPort:
		x.drop(frame.NoRoute) // there is no gateway
		return
	case e.at == x.from:
		x.drop(frame.Reflect)
		return
	}
	out := x.v.on(e.at.port)
	switch {
	case x.horizon(out):
		x.drop(frame.SplitHorizon)
	case len(x.b) > g.longest(out, e.at.peer):
		x.drop(frame.TooBig)
	default:
		x.t.forwarded++
		if out.port.id == farPort {
			out.port.tx++
			g.tunnel(out.tag, e.at.peer, x.b)
		} else {
			g.toHost(&x, out)
		}
	}
}

// horizon says that a frame may not go from where it came in to out.
func (x *passage) horizon(out *gatt) bool {
	return x.in != nil && out.group() != 0 && out.group() == x.in.group()
}

func (g *golden) longest(out *gatt, peer netip.Addr) int {
	if out.port.id == farPort {
		return g.longestTo(peer)
	}
	return out.port.mtu
}

// longestFlooded is what the most capable of those whom out floods to takes.
func (g *golden) longestFlooded(out *gatt) (most int) {
	if out.port.id == farPort {
		for _, p := range g.flooded[frame.VNI(out.tag)] {
			if a := p.Addr.Addr(); !slices.Contains(g.addrs, a) {
				most = max(most, g.longestTo(a))
			}
		}
	}
	if most == 0 { // a host, or nobody
		return g.longest(out, netip.Addr{})
	}
	return most
}

// floodedTo returns the peers that get frames to a MAC.
func (g *golden) floodedTo(vni frame.VNI, dst frame.MAC) []netip.Addr {
	var all, alone []netip.Addr
	single := false
	for _, p := range g.flooded[vni] {
		a := p.Addr.Addr()
		own := slices.Contains(g.addrs, a)
		switch single = single || p.MAC == dst; {
		case own:
		case p.MAC == dst:
			alone = append(alone, a)
		case p.MAC.IsZero():
			all = append(all, a)
		}
	}
	if single {
		return alone
	}
	return all
}

// flood sends a copy to every member that may have one.
func (g *golden) flood(x passage, dst frame.MAC) {
	class, off := vswitch.UnknownUnicast, frame.UnknownUnicastOff
	if dst == frame.Broadcast {
		class, off = vswitch.Broadcast, frame.BroadcastOff
	} else if dst[0]&1 != 0 {
		class, off = vswitch.Multicast, frame.MulticastOff
	}
	if x.v.cfg.NoFlood&class != 0 {
		x.drop(off)
		return
	}
	someone, why := false, frame.NoEgress
	for _, out := range x.v.members {
		// Only a hub lets frames out of the tunnel they came in from.
		back := out == x.in
		if out.cfg.NoFlood&class != 0 || x.horizon(out) || back && !x.from.peer.IsValid() {
			continue
		}
		if x.others(out) {
			why = frame.NotForwarder
			continue
		}
		someone = true
		switch {
		case len(x.b) > g.longestFlooded(out):
			x.dropOut(out, frame.TooBig)
		case out.port.id != farPort:
			g.toHost(&x, out)
		default:
			copies, tooBig := 0, 0
			for _, peer := range g.floodedTo(frame.VNI(out.tag), dst) {
				switch {
				case back && peer == x.from.peer:
				case len(x.b) > g.longestTo(peer):
					tooBig++
				default:
					copies++
					g.tunnel(out.tag, peer, x.b)
				}
			}
			switch {
			case copies > 0:
				out.port.tx++
			case tooBig > 0:
				x.dropOut(out, frame.TooBig)
			default:
				x.dropOut(out, frame.NoPeer)
			}
		}
	}
	if !someone {
		x.drop(why)
		return
	}
	count(&x.t.flood, class)
	count(&x.v.flood, class)
}

// others says that a flooded frame is for other VTEPs to send to the Ethernet segment that out is a link of.
func (x *passage) others(out *gatt) bool {
	r := out.cfg.Role
	return r != nil && x.in != nil && x.in.port.id == farPort && (r.NoFlood || slices.Contains(r.Shared, x.from.peer))
}

func (g *golden) toHost(x *passage, out *gatt) {
	if blocked(&out.cfg) {
		x.dropOut(out, frame.Blocked)
		return
	}
	out.port.tx++
	g.out[out.port.id] = append(g.out[out.port.id], onPort(out.tag, x.b))
}

// tunnel sends one copy over the network.
func (g *golden) tunnel(vni uint32, to netip.Addr, b []byte) {
	head := []byte{8, 0, 0, 0, byte(vni >> 16), byte(vni >> 8), byte(vni), 0}
	g.out[farPort] = append(g.out[farPort], onWire(to, append(head, b...)))
}

func onPort(tag uint32, b []byte) string { return fmt.Sprintf("tag %d %x", tag, b) }

func onWire(to netip.Addr, payload []byte) string { return fmt.Sprintf("%v: %x", to, payload) }
