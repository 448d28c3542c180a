package model

import (
	"encoding/binary"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// A passage is one frame inside one switch.
type passage struct {
	n    *gnode
	in   *gatt // nil for the switch's own frames
	v    *gvsi
	from dest
	b    []byte
	t    *tally // of the port it came in on
}

func etherType(b []byte) uint16 { return binary.BigEndian.Uint16(b[12:]) }

// fromHost is a frame on a host's port.
func (g *golden) fromHost(n *gnode, p *gport, b []byte) {
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
	g.bridge(passage{n: n, in: a, v: a.vsi, from: dest{port: p.id}, b: b, t: &p.tally})
}

// fromWire is a datagram at a node's VTEP (RFC 7348, section 5).
func (g *golden) fromWire(n *gnode, d datagram) {
	p := n.ports[vtepPort]
	p.rx++
	var a *gatt // of the VNI that the header names, whatever else is wrong
	if len(d.payload) >= 8 && d.payload[0]&0x08 != 0 {
		a = p.tagged(binary.BigEndian.Uint32(d.payload[4:]) >> 8)
	}
	drop := func(r frame.Reason) {
		p.rxDrops[r]++
		if a != nil {
			a.vsi.drops[r]++
		}
	}
	if own, _ := n.addr(d.src); own == d.src {
		drop(frame.OwnAddress)
		return
	}
	if n.listedOnly && !n.listed(d.src) {
		drop(frame.UnknownPeer)
		return
	}
	if len(d.payload) < 8 {
		drop(frame.Short)
		return
	}
	if d.payload[0]&0x08 == 0 {
		drop(frame.NoVNIFlag)
		return
	}
	if a == nil {
		drop(frame.UnknownVNI)
		return
	}
	g.bridge(passage{n: n, in: a, v: a.vsi, from: dest{vtepPort, d.src}, b: d.payload[8:], t: &p.tally})
}

// inject is a frame the switch itself sends.
func (g *golden) inject(n *gnode, vni frame.VNI, b []byte) {
	n.own.rx++
	v := n.vsis[vni]
	if v == nil {
		n.own.rxDrops[frame.UnknownVNI]++
		return
	}
	g.bridge(passage{n: n, v: v, b: b, t: &n.own})
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
	case e.at.port == ownPort:
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
	case len(x.b) > g.longest(x.n, out, e.at.peer):
		x.drop(frame.TooBig)
	default:
		x.t.forwarded++
		if out.port.id == vtepPort {
			out.port.tx++
			g.tunnel(x.n, out.tag, e.at.peer, x.b)
		} else {
			g.toHost(out, x.b)
		}
	}
}

// horizon says that a frame may not go from where it came in to out.
func (x *passage) horizon(out *gatt) bool {
	return x.in != nil && out.group() != 0 && out.group() == x.in.group()
}

func (g *golden) longest(n *gnode, out *gatt, peer netip.Addr) int {
	if out.port.id == vtepPort {
		return n.mtu(peer)
	}
	return out.port.mtu
}

// longestFlooded is what the most capable of those whom out floods to takes.
func (g *golden) longestFlooded(n *gnode, out *gatt) (most int) {
	if out.port.id == vtepPort {
		for _, peer := range n.flood[frame.VNI(out.tag)] {
			most = max(most, n.mtu(peer))
		}
	}
	if most == 0 { // a host, or nobody
		return g.longest(n, out, netip.Addr{})
	}
	return most
}

// flood sends a copy to every member that may have one.
func (g *golden) flood(x passage, dst frame.MAC) {
	class, off := classUnknown, frame.UnknownUnicastOff
	if dst == frame.Broadcast {
		class, off = classBroadcast, frame.BroadcastOff
	} else if dst[0]&1 != 0 {
		class, off = classMulticast, frame.MulticastOff
	}
	if x.v.cfg.NoFlood&class != 0 {
		x.drop(off)
		return
	}
	someone := false
	for _, out := range x.v.members {
		// Only a hub lets frames out of the tunnel they came in from.
		back := out == x.in
		if out.cfg.NoFlood&class != 0 || x.horizon(out) || back && !x.from.peer.IsValid() {
			continue
		}
		someone = true
		switch {
		case len(x.b) > g.longestFlooded(x.n, out):
			x.dropOut(out, frame.TooBig)
		case out.port.id != vtepPort:
			g.toHost(out, x.b)
		default:
			copies, tooBig := 0, 0
			for _, peer := range x.n.flood[frame.VNI(out.tag)] {
				switch {
				case back && peer == x.from.peer:
				case len(x.b) > x.n.mtu(peer):
					tooBig++
				default:
					copies++
					g.tunnel(x.n, out.tag, peer, x.b)
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
		x.drop(frame.NoEgress)
		return
	}
	count(&x.t.flood, class)
	count(&x.v.flood, class)
}

func (g *golden) toHost(out *gatt, b []byte) {
	out.port.tx++
	c := append([]byte(nil), b...)
	if out.tag != 0 {
		c = append(append(append([]byte(nil), b[:12]...), 0x81, 0, byte(out.tag>>8), byte(out.tag)), b[12:]...)
	}
	g.got[out.port.id] = append(g.got[out.port.id], c)
}

// tunnel sends one copy over the network.
func (g *golden) tunnel(n *gnode, vni uint32, to netip.Addr, b []byte) {
	own, _ := n.addr(to)
	head := []byte{8, 0, 0, 0, byte(vni >> 16), byte(vni >> 8), byte(vni), 0}
	g.send(own, netip.AddrPortFrom(to, g.port), append(head, b...))
}

// send is the network: datagrams arrive in order, or are counted.
func (g *golden) send(src netip.Addr, dst netip.AddrPort, payload []byte) {
	if g.cut[[2]netip.Addr{src, dst.Addr()}] {
		g.net.Cut++
		return
	}
	if k, ok := g.outside[dst]; ok {
		g.net.Delivered++
		g.wire[k] = append(g.wire[k], onWire(src, payload))
		return
	}
	for _, n := range g.nodes {
		if own, ok := n.addr(dst.Addr()); ok && n.listening && own == dst.Addr() && dst.Port() == g.port {
			g.net.Delivered++
			g.queue = append(g.queue, datagram{src, n, payload})
			return
		}
	}
	g.net.NoListener++
}

// settle lets everything under way arrive.
func (g *golden) settle() {
	for len(g.queue) > 0 {
		d := g.queue[0]
		g.queue = g.queue[1:]
		if d.to.ports[vtepPort] == nil {
			d.to.waiting = append(d.to.waiting, d)
			continue
		}
		g.fromWire(d.to, d)
	}
}
