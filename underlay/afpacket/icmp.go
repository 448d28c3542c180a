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
	q := wire.IPv4(c[wire.ICMPLen:]) // most likely cut
	if len(q) < wire.IPv4Len || q[0]>>4 != 4 || q.HeaderLen() < wire.IPv4Len || len(q) < q.HeaderLen()+wire.UDPLen ||
		q.Src() != [4]byte(m.ip[12:]) || q.Protocol() != wire.ProtoUDP || q.FragmentOffset() != 0 {
		return x, false
	}
	if x.mtu >= q.TotalLen() {
		return x, false // it was not too long
	}
	return x.about(wire.Mapped(q.Dst()), wire.UDP(q[q.HeaderLen():]))
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
	const problem = 4
	switch typ, code := c[0], c[1]; {
	case typ == wire.ICMPv6PacketTooBig:
		x.kind, x.mtu = errTooBig, int(min(binary.BigEndian.Uint32(c[4:]), 1<<16))
	case typ == wire.ICMPv6Unreachable && code == 4: // port
		x.kind = errRefused
	case typ == wire.ICMPv6Unreachable && (code == 1 || code == 5 || code == 6):
		x.kind = errProhibited
	case typ == wire.ICMPv6Unreachable:
		x.kind = errUnreachable
	case typ == wire.ICMPv6TimeExceeded || typ == problem:
		x.kind = errOther
	default:
		return x, false
	}
	q := wire.IPv6(c[wire.ICMPLen:])
	if len(q) < wire.IPv6Len+wire.UDPLen || q[0]>>4 != 6 || q.Src() != m.ip || q.NextHeader() != wire.ProtoUDP {
		return x, false
	}
	if x.mtu >= wire.IPv6Len+q.PayloadLen() {
		return x, false
	}
	return x.about(q.Dst(), wire.UDP(q[wire.IPv6Len:]))
}

// about adds the quoted datagram.
func (x icmpError) about(dst [16]byte, u wire.UDP) (icmpError, bool) {
	x.to = frame.Endpoint{IP: dst, Port: binary.BigEndian.Uint16(u[2:])}
	x.srcPort = binary.BigEndian.Uint16(u)
	x.quoted = u[wire.UDPLen:min(len(u), wire.UDPLen+quoteMax)]
	return x, true
}
