package afpacket

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// errorKind is the counter of an error in underlay.Stats.
type errorKind uint8

const (
	errRefused errorKind = iota
	errUnreachable
	errTooBig
	errProhibited
	errOther
)

// An icmpError is an error of ICMP (RFC 792, RFC 1191) or ICMPv6 (RFC 4443) about a datagram that this underlay
// may have sent.
type icmpError struct {
	kind    errorKind
	lost    bool           // it did not arrive, for another reason than its length or port
	to      frame.Endpoint // destination of the datagram
	srcPort uint16         // its source port; if it is not in use here, the error is forged
	mtu     int            // of errTooBig; 0 = unknown
	quoted  []byte         // borrowed: the start of the payload
}

// quoteMax limits quoted.
const quoteMax = 128

// readError parses a frame. ok is false if it is not an error about a packet from the local address (RFC
// 5927, section 4.1).
func (m *messenger) readError(b []byte) (x icmpError, ok bool) {
	e, ok := wire.ParseEthernet(b)
	if !ok || e.Dst() != m.mac {
		return x, false
	}
	if m.is4 && e.Type() == wire.TypeIPv4 {
		return m.readError4(e[wire.EthernetLen:])
	} else if !m.is4 && e.Type() == wire.TypeIPv6 {
		return m.readError6(e[wire.EthernetLen:])
	}
	return x, false
}

func (m *messenger) readError4(b []byte) (x icmpError, ok bool) {
	p, ok := wire.ParseIPv4(b)
	if !ok || p.Fragment() || !p.ChecksumOK() || p.Dst() != [4]byte(m.ip[12:]) || p.Protocol() != wire.ProtoICMP {
		return x, false
	}
	c := p.Payload()
	if len(c) < wire.ICMPLen || wire.Fold(wire.Sum(c, 0)) != 0xffff {
		return x, false
	}
	switch typ, code := c[0], c[1]; {
	case typ == wire.ICMPUnreachable && code == wire.ICMPFragNeeded:
		x.kind, x.mtu = errTooBig, int(binary.BigEndian.Uint16(c[6:]))
	case typ == wire.ICMPUnreachable && (code == 2 || code == 3): // protocol, port
		x.kind = errRefused
	case typ == wire.ICMPUnreachable && (code == 9 || code == 10 || code == 13):
		x.kind = errProhibited
	case typ == wire.ICMPUnreachable:
		x.kind = errUnreachable
	case typ == wire.ICMPTimeExceeded || typ == wire.ICMPParameter || typ == wire.ICMPSourceQuench:
		x.kind = errOther
	default:
		return x, false
	}
	const port, route = 3, 5 // a tunnel has no ports and no source routes (RFC 2003, section 4.1)
	x.lost = c[0] == wire.ICMPTimeExceeded || c[0] == wire.ICMPUnreachable && c[1] != port && c[1] != wire.ICMPFragNeeded && c[1] != route
	q := wire.IPv4(c[wire.ICMPLen:]) // most likely cut
	if len(q) < wire.IPv4Len || q[0]>>4 != 4 || q.HeaderLen() < wire.IPv4Len || len(q) < q.HeaderLen()+wire.UDPLen ||
		q.Src() != [4]byte(m.ip[12:]) || !m.sends(q.Protocol()) || q.FragmentOffset() != 0 {
		return x, false
	}
	if x.mtu >= q.TotalLen() {
		return x, false // it was not too long
	}
	return m.about(x, wire.Mapped(q.Dst()), q[q.HeaderLen():])
}

func (m *messenger) readError6(b []byte) (x icmpError, ok bool) {
	p, ok := wire.ParseIPv6(b)
	if !ok || p.Dst() != m.ip || p.NextHeader() != wire.ProtoICMPv6 {
		return x, false
	}
	c := p[wire.IPv6Len:]
	if len(c) < wire.ICMPLen || wire.Fold(wire.Sum(c, wire.Pseudo6(p, wire.ProtoICMPv6, len(c)))) != 0xffff {
		return x, false
	}
	switch typ, code := c[0], c[1]; {
	case typ == wire.ICMPv6PacketTooBig:
		x.kind, x.mtu = errTooBig, int(min(binary.BigEndian.Uint32(c[4:]), 1<<16))
	case typ == wire.ICMPv6Unreachable && code == 4: // port
		x.kind = errRefused
	case typ == wire.ICMPv6Unreachable && (code == 1 || code == 5 || code == 6):
		x.kind = errProhibited
	case typ == wire.ICMPv6Unreachable:
		x.kind = errUnreachable
	case typ == wire.ICMPv6TimeExceeded || typ == wire.ICMPv6Parameter:
		x.kind = errOther
	default:
		return x, false
	}
	const port, unknown = 4, 1 // the latter from a host without the tunnel (RFC 2473, section 8)
	x.lost = c[0] == wire.ICMPv6TimeExceeded || c[0] == wire.ICMPv6Unreachable && c[1] != port || c[0] == wire.ICMPv6Parameter && c[1] == unknown
	q := wire.IPv6(c[wire.ICMPLen:])
	if len(q) < wire.IPv6Len+wire.UDPLen || q[0]>>4 != 6 || q.Src() != m.ip || !m.sends(q.NextHeader()) {
		return x, false
	}
	if x.mtu >= wire.IPv6Len+q.PayloadLen() {
		return x, false
	}
	return m.about(x, q.Dst(), q[wire.IPv6Len:])
}

// sends reports whether the underlay sends a protocol.
func (m *messenger) sends(protocol uint8) bool {
	if m.raw {
		return protocol == wire.ProtoIPv4 || protocol == wire.ProtoIPv6
	}
	return protocol == wire.ProtoUDP
}

// about adds the quoted datagram, or packet in IP.
func (m *messenger) about(x icmpError, dst [16]byte, b []byte) (icmpError, bool) {
	x.to.IP = dst
	if !m.raw {
		u := wire.UDP(b)
		x.to.Port, x.srcPort = binary.BigEndian.Uint16(u[2:]), binary.BigEndian.Uint16(u)
		b = b[wire.UDPLen:]
	}
	x.quoted = b[:min(len(b), quoteMax)]
	return x, true
}
