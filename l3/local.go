package l3

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// onLink reports whether a packet is between a host of the segment and the gateway, and one of
// the addresses is link-local (RFC 4291, section 2.5.6; RFC 3927).
func (i *Interface) onLink(src, dst netip.Addr) bool {
	return slices.Contains(i.addrs, dst) && !slices.Contains(i.addrs, src) && (src.IsLinkLocalUnicast() || dst.IsLinkLocalUnicast())
}

// local4 takes packets to the gateway itself: it answers an echo request with a reply, hands UDP to the function of
// Gateway.Listen, and answers others with an ICMP error.
func (i *Interface) local4(x *packet, p wire.IPv4) frame.Verdict {
	if p.Fragment() {
		return i.reassemble4(x, p)
	}
	return i.answer4(x, p)
}

func (i *Interface) answer4(x *packet, p wire.IPv4) frame.Verdict {
	m := p.Payload()
	switch {
	case p.Protocol() == wire.ProtoUDP:
		return i.deliver(x, m, p[8], wire.Pseudo4(p, wire.ProtoUDP, 0), true)
	case p.Protocol() != wire.ProtoICMP:
		return i.refuse(x, icmperr.NoService, frame.NoRoute)
	case len(m) < wire.ICMPLen || m[0] != wire.ICMPEcho || m[1] != 0:
		return frame.Drop(frame.NoRoute)
	case wire.Fold(wire.Sum(m, 0)) != 0xffff:
		return frame.Drop(frame.BadChecksum)
	}
	m[0] = wire.ICMPEchoReply
	sum := wire.Update(uint16(m[2])<<8|uint16(m[3]), wire.ICMPEcho<<8, wire.ICMPEchoReply<<8)
	m[2], m[3] = byte(sum>>8), byte(sum)
	src, dst := p.Src(), p.Dst()
	copy(p[12:], dst[:])
	copy(p[16:], src[:])
	p[8] = icmperr.TTL
	p.SetChecksum(0)
	p.SetChecksum(wire.Checksum(wire.Sum(p[:p.HeaderLen()], 0)))
	return i.echoed(x)
}

// local6 is local4 for IPv6. It skips extension headers (RFC 8200, section 4); the answer has
// none.
func (i *Interface) local6(x *packet, p wire.IPv6) frame.Verdict {
	u, ok := p.Upper()
	switch {
	case !ok || segmentsLeft(p, u.At):
		return frame.Drop(frame.BadHeader)
	case u.Fragment != 0:
		return i.reassemble6(x, p, u.Fragment)
	}
	return i.answer6(x, p, u)
}

func (i *Interface) answer6(x *packet, p wire.IPv6, u wire.IPv6Upper) frame.Verdict {
	m := p[u.At:]
	switch {
	case u.Protocol == wire.ProtoUDP:
		return i.deliver(x, m, p[7], wire.Pseudo6(p, wire.ProtoUDP, 0), false)
	case u.Protocol != wire.ProtoICMPv6:
		return i.refuse(x, icmperr.NoService, frame.NoRoute)
	case len(m) < wire.ICMPLen || m[0] != wire.ICMPv6Echo || m[1] != 0:
		return frame.Drop(frame.NoRoute)
	case wire.Fold(wire.Sum(m, wire.Pseudo6(p, wire.ProtoICMPv6, len(m)))) != 0xffff:
		return frame.Drop(frame.BadChecksum)
	}
	if u.At != wire.IPv6Len {
		n := copy(p[wire.IPv6Len:], m)
		p[6] = wire.ProtoICMPv6
		p.SetPayloadLen(n)
		m = p[wire.IPv6Len : wire.IPv6Len+n]
		x.f.Trim(x.ip + wire.IPv6Len + n)
	}
	m[0] = wire.ICMPv6EchoReply
	sum := wire.Update(uint16(m[2])<<8|uint16(m[3]), wire.ICMPv6Echo<<8, wire.ICMPv6EchoReply<<8)
	m[2], m[3] = byte(sum>>8), byte(sum)
	src, dst := p.Src(), p.Dst()
	copy(p[8:], dst[:])
	copy(p[24:], src[:])
	p[7] = icmperr.TTL
	return i.echoed(x)
}

// segmentsLeft reports whether a routing header before end has segments left: such packets are
// dropped (RFC 5095, section 3; RFC 8200, section 4.4).
func segmentsLeft(p wire.IPv6, end int) bool {
	for next, at := p.NextHeader(), wire.IPv6Len; at+8 <= end; {
		if next == wire.ProtoRouting && p[at+3] != 0 {
			return true
		}
		size := (int(p[at+1]) + 1) * 8
		switch next {
		case wire.ProtoFragment:
			size = 8
		case wire.ProtoAuth: // RFC 4302, section 2.2
			size = (int(p[at+1]) + 2) * 4
		}
		next, at = p[at], at+size
	}
	return false
}

func (i *Interface) echoed(x *packet) frame.Verdict {
	if x.f.Kind == frame.Ethernet {
		wire.Ethernet(x.f.Bytes()).Turn()
	}
	x.f.GSO, x.f.Hash = frame.GSO{}, 0
	i.counts.Of(x.worker).echo.Count(1, x.worker)
	return frame.Reply
}
