package l3

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// local4 answers what is for the gateway itself: echo requests. Who asks for another
// service is told that there is none.
func (i *Interface) local4(x *packet, p wire.IPv4) frame.Verdict {
	m := p.Payload()
	switch {
	case p.Fragment():
		return frame.Drop(frame.NoRoute)
	case p.Protocol() != wire.ProtoICMP:
		return i.refuse(x, noService, frame.NoRoute)
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
	p[8] = ttl
	p.SetChecksum(0)
	p.SetChecksum(wire.Checksum(wire.Sum(p[:p.HeaderLen()], 0)))
	return i.echoed(x)
}

// local6 likewise.
func (i *Interface) local6(x *packet, p wire.IPv6) frame.Verdict {
	m := p[wire.IPv6Len:]
	switch {
	case p.NextHeader() != wire.ProtoICMPv6:
		return i.refuse(x, noService, frame.NoRoute)
	case len(m) < wire.ICMPLen || m[0] != wire.ICMPv6Echo || m[1] != 0:
		return frame.Drop(frame.NoRoute)
	case wire.Fold(wire.Sum(m, wire.Pseudo6(p, wire.ProtoICMPv6, len(m)))) != 0xffff:
		return frame.Drop(frame.BadChecksum)
	}
	m[0] = wire.ICMPv6EchoReply
	sum := wire.Update(uint16(m[2])<<8|uint16(m[3]), wire.ICMPv6Echo<<8, wire.ICMPv6EchoReply<<8)
	m[2], m[3] = byte(sum>>8), byte(sum)
	src, dst := p.Src(), p.Dst()
	copy(p[8:], dst[:])
	copy(p[24:], src[:])
	p[7] = ttl
	return i.echoed(x)
}

func (i *Interface) echoed(x *packet) frame.Verdict {
	if x.f.Kind == frame.Ethernet {
		wire.Ethernet(x.f.Bytes()).Turn()
	}
	x.f.GSO, x.f.Hash = frame.GSO{}, 0
	i.lane(x.worker).echo.count(x.worker)
	return frame.Reply
}
