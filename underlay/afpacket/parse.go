package afpacket

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A received frame:
//
//	0          14          at                  at+8      to       len
//	+----------+-----------+-------------------+---------+---------+
//	| Ethernet | IP        | UDP               | payload | padding |
//	+----------+-----------+-------------------+---------+---------+
//
// parse checks what the kernel checks for a UDP socket, header by header (RFC 1122, sections 3.2.1 and
// 4.1.3; RFC 8200).

// rules says which frames are for this underlay.
type rules struct {
	is4   bool
	mac   [6]byte
	ip    [16]byte // IPv4 as IPv4-mapped
	port  uint16   // 0: IP-in-IP
	zero6 bool     // accept datagrams without a checksum over IPv6

	groups map[[16]byte]bool // joined multicast groups; immutable
}

// An info describes the datagram, or the run of datagrams, in a frame.
type info struct {
	from, to int           // the payload
	seg      int           // 0, or the payload of each datagram of a run but the last
	csum     int           // 0, or where an unfinished checksum in the payload begins to count
	offset   int           // of that checksum, from csum
	inner    frame.GSOType // with csum: type of the superframe in the payload
	size     int           // and its segment size
	src      frame.Endpoint
	dst      [16]byte // local address or group
	tos, ttl uint8
	kind     frame.Kind // of IP-in-IP
}

// parse finds the datagram in a frame and overwrites p. match is false for frames to others; drop is the reason
// why a frame is refused.
//
// IPv6 packets with extension headers are refused as BadHeader, since tunnels send none; but one header of destination
// options is skipped in IP-in-IP. Fragments of both families are refused as Fragment.
func (r *rules) parse(b []byte, h *gso.Virtio, p *info) (drop frame.Reason, match bool) {
	*p = info{}
	e, ok := wire.ParseEthernet(b)
	if !ok || e.Dst() != r.mac && !r.toGroup(e) {
		return 0, false
	}
	var ip, udp []byte
	var proto uint8
	switch t := e.Type(); {
	case r.is4 && t == wire.TypeIPv4:
		ip = b[wire.EthernetLen:]
		switch {
		case len(ip) < wire.IPv4Len:
			return frame.Short, true
		case ip[0]>>4 != 4 || ip[0]&15 < wire.IPv4Len/4:
			return frame.BadHeader, true
		}
		x := wire.IPv4(ip)
		n := x.HeaderLen()
		switch {
		case n > len(ip) || x.TotalLen() > len(ip):
			return frame.Short, true
		case x.TotalLen() < n:
			return frame.BadHeader, true
		case x.Fragment():
			return frame.Fragment, true
		}
		x = x[:x.TotalLen()]
		if !x.ChecksumOK() {
			return frame.BadChecksum, true
		}
		if p.dst = wire.Mapped(x.Dst()); p.dst != r.ip && !r.groups[p.dst] {
			return 0, false
		}
		proto = x.Protocol()
		p.src.IP = wire.Mapped(x.Src())
		p.tos, p.ttl = x[1], x[8]
		p.from, udp = wire.EthernetLen+n, x[n:]
	case !r.is4 && t == wire.TypeIPv6:
		ip = b[wire.EthernetLen:]
		switch {
		case len(ip) < wire.IPv6Len:
			return frame.Short, true
		case ip[0]>>4 != 6:
			return frame.BadHeader, true
		}
		x := wire.IPv6(ip)
		if wire.IPv6Len+x.PayloadLen() > len(ip) {
			return frame.Short, true
		}
		if p.dst = x.Dst(); p.dst != r.ip && !r.groups[p.dst] {
			return 0, false
		}
		p.from, udp, proto = wire.EthernetLen+wire.IPv6Len, x[wire.IPv6Len:wire.IPv6Len+x.PayloadLen()], x.NextHeader()
		if proto == wire.ProtoDstOpts && r.port == 0 && len(udp) >= 8 && len(udp) >= int(udp[1])*8+8 {
			n := int(udp[1])*8 + 8 // RFC 8200, section 4.6; such as a tunnel encapsulation limit (RFC 2473, section 4.1.1)
			p.from, proto, udp = p.from+n, udp[0], udp[n:]
		}
		switch proto {
		case wire.ProtoFragment:
			return frame.Fragment, true
		case wire.ProtoHopByHop, wire.ProtoRouting, wire.ProtoDstOpts:
			return frame.BadHeader, true
		}
		p.src.IP = x.Src()
		if p.src.Is4() {
			return frame.Martian, true
		}
		p.tos, p.ttl = x[0]<<4|x[1]>>4, x[7]
	default:
		return 0, false
	}
	switch {
	case r.port != 0 && proto == wire.ProtoUDP:
	case r.port == 0 && proto == wire.ProtoIPv4:
		p.kind = frame.IPv4
	case r.port == 0 && proto == wire.ProtoIPv6:
		p.kind = frame.IPv6
	default:
		return 0, false
	}
	if !isSource(&p.src) {
		return frame.Martian, true
	}
	if r.port == 0 {
		p.to = p.from + len(udp)
		return r.offloaded(b, h, -1, p), true
	}
	if len(udp) < wire.UDPLen {
		return frame.Short, true
	}
	u := wire.UDP(udp)
	if binary.BigEndian.Uint16(u[2:]) != r.port {
		return 0, false
	}
	n := u.Len()
	if n < wire.UDPLen || n > len(u) {
		return frame.Short, true
	}
	p.src.Port = binary.BigEndian.Uint16(u)
	at := p.from
	p.from, p.to = at+wire.UDPLen, at+n
	if drop := r.offloaded(b, h, at, p); drop != frame.NotDropped {
		return drop, true
	}
	switch {
	case u.Checksum() == 0:
		if !r.is4 && !r.zero6 {
			return frame.BadChecksum, true
		}
	case h[0]&(frame.NeedsCsum|gso.DataValid) != 0:
	default:
		var pseudo uint64
		if r.is4 {
			pseudo = wire.Pseudo4(ip, wire.ProtoUDP, n)
		} else {
			pseudo = wire.Pseudo6(ip, wire.ProtoUDP, n)
		}
		if wire.Fold(wire.Sum(u[:n], pseudo)) != 0xffff {
			return frame.BadChecksum, true
		}
	}
	return frame.NotDropped, true
}

// toGroup reports whether a frame is to a multicast MAC, and its packet to a joined group. A packet to a
// unicast address in such a frame is ignored (RFC 1122, section 3.3.6).
func (r *rules) toGroup(e wire.Ethernet) bool {
	if len(r.groups) == 0 || e.Dst()[0]&1 == 0 {
		return false
	}
	var dst [16]byte
	switch ip, t := e[wire.EthernetLen:], e.Type(); {
	case r.is4 && t == wire.TypeIPv4 && len(ip) >= wire.IPv4Len:
		dst = wire.Mapped(wire.IPv4(ip).Dst())
	case !r.is4 && t == wire.TypeIPv6 && len(ip) >= wire.IPv6Len:
		dst = wire.IPv6(ip).Dst()
	}
	return r.groups[dst]
}

// offloaded adds what the virtio header says about a frame whose UDP header is at, -1 without.
//
// A frame with an unfinished checksum was not on a wire: its sender is on this machine, or the network card has
// joined a run. The checksum is that of the outer UDP header, or that of a packet in the payload, as from a vxlan
// device of this kernel; then the frame may be a superframe. An outer checksum beside it will be right when the
// inner one is complete (checksum offload of a tunnel).
func (r *rules) offloaded(b []byte, h *gso.Virtio, at int, p *info) frame.Reason {
	g, _ := h.GSO(0)
	if g == (frame.GSO{}) {
		return frame.NotDropped
	}
	size, start, offset := int(g.Size), int(g.CsumStart), int(g.CsumOffset)
	if g.Flags == 0 || g.Type != frame.GSONone && size == 0 {
		return frame.BadHeader
	}
	if start == at && offset == wire.UDPChecksum { // the outer one
		switch {
		case g.Type == frame.GSONone:
		case g.Type != frame.GSOUDP:
			return frame.BadHeader
		case p.to-p.from > size:
			p.seg = size
		}
		return frame.NotDropped
	}
	if start < p.from || start+offset+2 > p.to {
		return frame.BadHeader
	}
	switch g.Type &^ frame.GSOECN {
	case frame.GSONone, frame.GSOTCP4, frame.GSOTCP6, frame.GSOUDP:
		p.csum, p.offset, p.inner, p.size = start, offset, g.Type, size
		return frame.NotDropped
	}
	return frame.BadHeader
}

// isSource reports whether an address can be a source: not multicast, unspecified or loopback (RFC 1122,
// section 3.2.1.3; RFC 4291, section 2.5).
func isSource(e *frame.Endpoint) bool {
	if e.Is4() {
		a := binary.BigEndian.Uint32(e.IP[12:])
		return a != 0 && a>>24 != 127 && a>>28 != 0xe && a != 0xffffffff
	}
	return e.IP[0] != 0xff && ([15]byte(e.IP[:15]) != [15]byte{} || e.IP[15] > 1)
}
