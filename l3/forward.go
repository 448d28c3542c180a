package l3

import (
	"encoding/binary"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A packet is an IPv4 or IPv6 packet being routed.
type packet struct {
	f      *frame.Frame
	ip     int // its offset in the frame
	v6     bool
	tick   frame.Tick
	worker int
	flow   uint64     // hash, for a route with several next hops
	out    *Interface // it was sent to
	waited bool       // for a next hop that did not answer; it does not wait for another
	passed bool       // the filter of the interface where it came in
	own    bool       // it is an error of the gateway's, which filters do not see
}

// src returns the packet's source.
func (x *packet) src() netip.Addr {
	b := x.f.Bytes()[x.ip:]
	if x.v6 {
		return netip.AddrFrom16(wire.IPv6(b).Src())
	}
	return netip.AddrFrom4(wire.IPv4(b).Src())
}

// length returns the length in the IP header. The packet is at the front of the frame.
func (x *packet) length() int {
	if x.v6 {
		return wire.IPv6Len + wire.IPv6(x.f.Bytes()).PayloadLen()
	}
	return wire.IPv4(x.f.Bytes()).TotalLen()
}

// dst returns the packet's destination.
func (x *packet) dst() netip.Addr {
	b := x.f.Bytes()[x.ip:]
	if x.v6 {
		return netip.AddrFrom16(wire.IPv6(b).Dst())
	}
	return netip.AddrFrom4(wire.IPv4(b).Dst())
}

// forward4 routes an IPv4 packet (RFC 1812, section 5.2).
func (i *Interface) forward4(x *packet) frame.Verdict {
	p, ok := wire.ParseIPv4(x.f.Bytes()[x.ip:])
	switch {
	case !ok:
		return frame.Drop(frame.BadHeader)
	case !p.ChecksumOK():
		return frame.Drop(frame.BadChecksum)
	case p.HeaderLen() > wire.IPv4Len && sourceRouted(p):
		return frame.Drop(frame.BadHeader)
	}
	src, dst := p.Src(), p.Dst()
	if !routable4(src) || !routable4(dst) || src == i.ip4 {
		if hostaddr.Is4(src) && i.onLink(x.src(), x.dst()) {
			return i.local4(x, p)
		}
		return frame.Drop(frame.Martian)
	}
	to := netip.AddrFrom4(dst)
	r, ok := i.vrf.routes.Load().Lookup(to)
	switch {
	case !ok:
		return i.refuse(x, icmperr.NoRoute, frame.NoRoute)
	case r.kind == local:
		return i.local4(x, p)
	case r.kind == blackhole:
		return frame.Drop(frame.NoRoute)
	case p[8] <= 1:
		return i.refuse(x, icmperr.TimeExceeded, frame.TTL)
	}
	h := r.one
	if h == nil {
		x.flow = i.vrf.gateway.flow4(p)
		h = r.pick(x.flow)
	}
	v := i.send(x, r, h, to)
	if v == frame.Reenter || v.Action() == frame.ActForward {
		p[8]--
		old := binary.BigEndian.Uint16(p[8:])
		p.SetChecksum(wire.Update(p.Checksum(), old+0x100, old))
		i.counts.Of(x.worker).routed4.Count(1, x.worker)
	}
	return v
}

// forward6 likewise routes an IPv6 packet.
func (i *Interface) forward6(x *packet) frame.Verdict {
	p, ok := wire.ParseIPv6(x.f.Bytes()[x.ip:])
	if !ok {
		return frame.Drop(frame.BadHeader)
	}
	src, dst := p.Src(), p.Dst()
	if !routable6(src) || !routable6(dst) || src == i.ip6 {
		if hostaddr.Is6(src) && i.onLink(x.src(), x.dst()) {
			return i.local6(x, p)
		}
		return frame.Drop(frame.Martian)
	}
	to := netip.AddrFrom16(dst)
	r, ok := i.vrf.routes.Load().Lookup(to)
	switch {
	case !ok:
		return i.refuse(x, icmperr.NoRoute, frame.NoRoute)
	case r.kind == local:
		return i.local6(x, p)
	case r.kind == blackhole:
		return frame.Drop(frame.NoRoute)
	case p[7] <= 1:
		return i.refuse(x, icmperr.TimeExceeded, frame.TTL)
	}
	h := r.one
	if h == nil {
		x.flow = i.vrf.gateway.flow6(p)
		h = r.pick(x.flow)
	}
	v := i.send(x, r, h, to)
	if v == frame.Reenter || v.Action() == frame.ActForward {
		p[7]--
		i.counts.Of(x.worker).routed6.Count(1, x.worker)
	}
	return v
}

// send directs a packet to dst to a next hop of a route: it writes the Ethernet header, or removes it. Verdicts
// other than Reenter and Forward leave the packet unchanged.
func (i *Interface) send(x *packet, r *route, h *nextHop, dst netip.Addr) frame.Verdict {
	f, out := x.f, h.out
	x.out = out
	if i.in.Load() != nil || out.out.Load() != nil {
		if v := i.judge(x, r, h, dst); v != frame.Continue {
			return v
		}
	}
	if out.cfg.Port != 0 {
		if t := out.cfg.Tunnel; t != nil {
			if _, ok := i.answerable(x, 0); ok && t.Failed(h.to.Peer()) {
				i.report(x, icmperr.NoHost)
				i.vrf.nextHops.mark(h, unreachable, x.tick+unreachableFor)
			}
		}
		f.Pull(x.ip)
		f.Trim(x.length()) // remove Ethernet padding
		f.Kind, f.VNI, f.From, f.Tunnel = frame.IPv4, out.cfg.VNI, 0, false
		if x.v6 {
			f.Kind = frame.IPv6
		}
		return frame.Forward(h.to)
	}
	mac, from := h.mac, out.mac
	if mac == 0 {
		next := h.ip
		if !next.IsValid() {
			next = dst
		}
		e := out.neighbours.Resolve(next)
		if e == 0 {
			if other := out.passOver(x, r, h); other != nil {
				return i.send(x, r, other, dst)
			}
			return out.wait(x, next, i)
		}
		mac = e.MAC()
		if e.Remote() {
			from = out.own
		}
	}
	if x.ip == 0 {
		f.Push(wire.EthernetLen)
	}
	t := uint64(wire.TypeIPv4)
	if x.v6 {
		t = wire.TypeIPv6
	}
	b := f.Bytes()
	_ = b[wire.EthernetLen]
	binary.BigEndian.PutUint64(b, mac<<16|from>>32)
	binary.BigEndian.PutUint32(b[8:], uint32(from))
	binary.BigEndian.PutUint16(b[12:], uint16(t))
	f.Kind, f.VNI = frame.Ethernet, out.cfg.VNI
	return frame.Reenter
}

// routable4 reports whether packets from or to an address are routed: not this network,
// loopback, link-local, multicast, reserved or broadcast (RFC 1812, sections 5.3.7 and
// 4.2.2.11; RFC 3927, section 7).
func routable4(a [4]byte) bool { return hostaddr.Is4(a) && !(a[0] == 169 && a[1] == 254) }

// routable6 likewise (RFC 4291, section 2.5).
func routable6(a [16]byte) bool { return hostaddr.Is6(a) && !(a[0] == 0xfe && a[1]&0xc0 == 0x80) }

// sourceRouted reports whether a packet has a source route, loose or strict, or malformed options
// (RFC 7126, sections 4.3 and 4.4: drop such packets).
func sourceRouted(p wire.IPv4) bool {
	for o := p[wire.IPv4Len:p.HeaderLen()]; ; {
		n := optionLen(o)
		if n <= 0 {
			return n < 0
		}
		if o[0] == 131 || o[0] == 137 {
			return true
		}
		o = o[n:]
	}
}

// optionLen returns the length of the first option of an IPv4 or TCP header: 0 at the end of the
// options, -1 if it is malformed.
func optionLen(o []byte) int {
	switch {
	case len(o) == 0 || o[0] == 0: // end of options
		return 0
	case o[0] == 1: // no operation
		return 1
	case len(o) < 2 || o[1] < 2 || int(o[1]) > len(o):
		return -1
	}
	return int(o[1])
}

// flow4 hashes the addresses, protocol and ports of a flow; of fragments no ports, so that all
// take one path.
func (g *Gateway) flow4(p wire.IPv4) uint64 {
	return g.seed.Hash128(binary.BigEndian.Uint64(p[12:]), transport(p.Protocol(), p.Payload(), p.Fragment()))
}

func (g *Gateway) flow6(p wire.IPv6) uint64 {
	w := [5]uint64{4: transport(p.NextHeader(), p[wire.IPv6Len:], false)}
	for k := range 4 {
		w[k] = binary.BigEndian.Uint64(p[8+8*k:])
	}
	return g.seed.Hash320(&w)
}

// transport returns the protocol and the ports.
func transport(protocol uint8, payload []byte, fragment bool) uint64 {
	w := uint64(protocol) << 32
	if (protocol == wire.ProtoTCP || protocol == wire.ProtoUDP) && len(payload) >= 4 && !fragment {
		w |= uint64(binary.BigEndian.Uint32(payload))
	}
	return w
}
