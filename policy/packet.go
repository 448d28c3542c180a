package policy

import (
	"encoding/binary"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Protocols that package wire does not have.
const (
	protoIPIP    = 4
	protoIPv6    = 41
	protoGRE     = 47
	protoDCCP    = 33
	protoSCTP    = 132
	protoUDPLite = 136
)

// A class says which rules apply to a packet.
type class uint8

const (
	plain class = iota
	classARP
	classND
	numClasses
)

// An addr is an IP address in two words. IPv4 addresses are mapped (RFC 4291, section 2.5.5.2);
// IPv6 packets with mapped addresses are malformed.
type addr struct{ hi, lo uint64 }

const mapped = 0xffff << 32

func addr4(b []byte) addr { return addr{0, mapped | uint64(binary.BigEndian.Uint32(b))} }
func addr6(b []byte) addr { return addr{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])} }
func (a addr) is4() bool  { return a.hi == 0 && a.lo>>32 == 0xffff }
func (a addr) less(b addr) bool {
	return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo
}

// isGroup reports whether a is a multicast address, or 255.255.255.255.
func (a addr) isGroup() bool {
	if a.is4() {
		return uint8(a.lo>>28) == 0xfe || uint32(a.lo) == 0xffffffff
	}
	return a.hi>>56 == 0xff
}

func (a addr) netip() netip.Addr {
	if a.is4() {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(a.lo))
		return netip.AddrFrom4(b)
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], a.hi)
	binary.BigEndian.PutUint64(b[8:], a.lo)
	return netip.AddrFrom16(b)
}

// A packet holds the fields of a frame that rules and flows use.
type packet struct {
	srcMAC, dstMAC uint64
	src, dst       addr
	etherType      uint16
	group          uint16 // of the sender
	class          class
	at             int  // the packet's offset in the frame
	macs           bool // it is Ethernet
	ip             bool
	protocol       uint8
	flags          uint8 // of TCP

	// ports means that the next two are known. For ICMP dport is type<<8 | code, and sport is 0.
	ports        bool
	sport, dport uint16
	echo         echo
	id           uint16 // of an echo

	first, later bool   // the first of several fragments, or another one
	fragment     uint32 // identification of their datagram

	quoted []byte // borrowed: the packet in an ICMP error
}

// echo says whether an ICMP message is an echo.
type echo uint8

const (
	noEcho echo = iota
	echoRequest
	echoReply
)

// parse reads a frame. It returns false if a header is malformed: receivers may disagree on what
// the frame is.
func (k *packet) parse(f *frame.Frame) bool {
	*k = packet{group: f.GBP.ID}
	b := f.Bytes()
	kind := f.Kind
	if kind == frame.Ethernet {
		e, ok := wire.ParseEthernet(b)
		if !ok {
			return false
		}
		k.macs = true
		k.dstMAC, k.srcMAC = frame.MAC(b).Uint64(), frame.MAC(b[6:]).Uint64()
		t, at, ok := e.Open()
		if !ok {
			return false
		}
		k.etherType, k.at, b = t, at, b[at:]
		switch t {
		case wire.TypeIPv4:
			kind = frame.IPv4
		case wire.TypeIPv6:
			kind = frame.IPv6
		case wire.TypeARP:
			k.class = classARP
			return true
		default:
			return true
		}
	}
	if kind == frame.IPv4 {
		k.etherType = wire.TypeIPv4
		return k.ipv4(b, true)
	}
	k.etherType = wire.TypeIPv6
	return k.ipv6(b, true)
}

// ipv4 reads a packet, or if whole is false the part that an ICMP error quotes.
func (k *packet) ipv4(b []byte, whole bool) bool {
	p, ok := wire.ParseIPv4(b)
	if !ok {
		if p = b; whole || len(b) < wire.IPv4Len || b[0]>>4 != 4 || p.HeaderLen() < wire.IPv4Len || len(b) < p.HeaderLen() {
			return false
		}
	}
	k.ip, k.protocol, k.src, k.dst = true, p.Protocol(), addr4(p[12:]), addr4(p[16:])
	if p.Fragment() {
		k.fragment = uint32(p.ID())
		if at := p.FragmentOffset(); at != 0 {
			k.later = true
			return k.protocol != wire.ProtoTCP || at >= wire.TCPLen // RFC 1858, section 3; RFC 3128
		}
		k.first = true
	}
	return k.upper(p.Payload(), whole)
}

func (k *packet) ipv6(b []byte, whole bool) bool {
	p, ok := wire.ParseIPv6(b)
	if !ok {
		if p = b; whole || len(b) < wire.IPv6Len || b[0]>>4 != 6 {
			return false
		}
	}
	k.ip, k.src, k.dst = true, addr6(p[8:]), addr6(p[24:])
	if k.src.is4() || k.dst.is4() {
		return false
	}
	u, ok := p.Upper()
	if !ok {
		return false
	}
	k.protocol = u.Protocol
	if u.Fragment != 0 {
		k.fragment = binary.BigEndian.Uint32(p[u.Fragment+4:])
		k.later = u.Later
		if k.later {
			return true
		}
		k.first = p[u.Fragment+3]&1 != 0 // more of them follow
	}
	if k.protocol == wire.ProtoICMPv6 && u.At == wire.IPv6Len && p[7] == 255 && len(p) > u.At &&
		p[u.At] >= wire.RouterSolicitation && p[u.At] <= wire.NeighbourAdvert {
		k.class = classND
	}
	return k.upper(p[u.At:], whole)
}

// upper reads the header of the transport protocol. It must be complete.
func (k *packet) upper(b []byte, whole bool) bool {
	need := 8 // UDP, UDP-Lite, ICMP; what an error quotes at least (RFC 792)
	switch {
	case k.protocol == wire.ProtoICMP && k.src.is4(), k.protocol == wire.ProtoICMPv6 && !k.src.is4():
		if len(b) < need {
			return false
		}
		k.icmp(b)
		return true
	case !hasPorts(k.protocol):
		return true
	case !whole:
	case k.protocol == wire.ProtoTCP:
		need = wire.TCPLen
	case k.protocol != wire.ProtoUDP && k.protocol != protoUDPLite:
		need = 12 // SCTP (RFC 9260, section 3.1), DCCP (RFC 4340, section 5.1)
	}
	if len(b) < need {
		return false
	}
	k.ports, k.sport, k.dport = true, binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	if k.protocol == wire.ProtoTCP && whole {
		k.flags = wire.TCP(b).Flags()
	}
	return true
}

func (k *packet) icmp(b []byte) {
	k.ports, k.dport = true, uint16(b[0])<<8|uint16(b[1])
	k.id = binary.BigEndian.Uint16(b[4:])
	if k.src.is4() {
		switch b[0] {
		case wire.ICMPEcho:
			k.echo = echoRequest
		case wire.ICMPEchoReply:
			k.echo = echoReply
		case wire.ICMPUnreachable, wire.ICMPTimeExceeded, wire.ICMPParameter:
			k.quoted = b[wire.ICMPLen:]
		}
		return
	}
	switch t := b[0]; {
	case t == wire.ICMPv6Echo:
		k.echo = echoRequest
	case t == wire.ICMPv6EchoReply:
		k.echo = echoReply
	case t >= wire.ICMPv6Unreachable && t <= 4:
		k.quoted = b[wire.ICMPLen:]
	}
}

// quote reads the packet in an ICMP error. It must be trackable, and its source the destination of
// the error.
func (k *packet) quote(q *packet) bool {
	*q = packet{}
	read := q.ipv6
	if k.src.is4() {
		read = q.ipv4
	}
	return read(k.quoted, false) && !q.later && q.src == k.dst && q.flowing()
}

// flowing reports whether the packet is one that flows are made of.
func (k *packet) flowing() bool {
	switch {
	case !k.ip, k.later, k.class != plain, k.dst.isGroup():
		return false
	case k.protocol == wire.ProtoICMP, k.protocol == wire.ProtoICMPv6:
		return k.echo != noEcho
	}
	return true
}

// opens reports whether the packet may be the first of a flow.
func (k *packet) opens(pickUp bool) bool {
	switch {
	case k.echo == echoReply:
		return false
	case k.protocol != wire.ProtoTCP:
		return true
	case k.flags&wire.SYN != 0:
		return k.flags&(wire.ACK|wire.RST|wire.FIN) == 0
	}
	return pickUp && k.flags&(wire.RST|wire.FIN) == 0
}

// reversed returns the packet of the opener that k replies to.
func (k *packet) reversed() packet {
	t := *k
	t.src, t.dst, t.srcMAC, t.dstMAC = k.dst, k.src, k.dstMAC, k.srcMAC
	switch {
	case k.echo == noEcho:
		t.sport, t.dport = k.dport, k.sport
	case k.src.is4():
		t.echo, t.dport = echoRequest, wire.ICMPEcho<<8
	default:
		t.echo, t.dport = echoRequest, wire.ICMPv6Echo<<8
	}
	return t
}
