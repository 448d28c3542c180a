package icmperr

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/internal/wire"
)

const (
	TTL = 64

	MinMTU4   = 68  // RFC 791, section 3.2
	MaxError4 = 576 // longest ICMP error, with its IP header (RFC 1812, section 4.3.2.3)
	Head4     = wire.IPv4Len + wire.ICMPLen
	minQuote  = 8 // bytes after the quoted IP header (RFC 792)

	tosControl = 0xc0 // precedence of ICMP errors: internetwork control (RFC 1812, section 4.3.2.5)
)

// answer4 turns f, whose IPv4 packet begins at ip, into ICMP "fragmentation needed".
func (t *PathMTU) answer4(f *frame.Frame, ip int, at frame.At) Outcome {
	b := f.Bytes()
	p, ok := wire.ParseIPv4(b[ip:])
	if !ok || !p.ChecksumOK() {
		return Malformed
	}
	mtu := at.MTU - ip
	quote := min(len(p), MaxError4-Head4, mtu-Head4)
	switch {
	case min(len(p), f.SegLen()-ip) <= mtu:
		return fits
	case mtu < MinMTU4 || quote < p.HeaderLen()+minQuote:
		return tinyMTU
	}
	return t.Forge4(f, ip, at.Tick, FragNeeded, mtu, quote)
}

// Forge4 turns f, whose IPv4 packet begins at ip, into an ICMP error from the packet's destination, with the first quote
// bytes of the packet. The frame must be long enough.
func (t *PathMTU) Forge4(f *frame.Frame, ip int, now frame.Tick, e Refusal, mtu, quote int) Outcome {
	b := f.Bytes()
	p, _ := wire.ParseIPv4(b[ip:])
	src, dst := p.Src(), p.Dst()
	switch o := Tellable4(p); {
	case (o == Sent4 || o == icmpError) && e == FragNeeded && !p.DF():
		return fragmenting
	case o != Sent4:
		return o
	case !t.Allow(src[:], f.VNI, f.From, now):
		return limited
	}
	copy(b[ip+Head4:], p[:quote])
	a := b[ip : ip+Head4+quote]
	Put4(a, e, uint32(mtu), dst, src)
	finish(f, ip+len(a))
	return Sent4
}

// Tellable4 returns Sent4, or why the sender of a packet gets no errors about it.
func Tellable4(p wire.IPv4) Outcome {
	switch {
	case !hostaddr.Is4(p.Src()) || !hostaddr.Is4(p.Dst()):
		return notHost
	case p.FragmentOffset() != 0:
		return fragment
	case p.Protocol() == wire.ProtoICMP && (len(p.Payload()) == 0 || wire.ICMPIsError(p.Payload()[0])):
		return icmpError
	}
	return Sent4
}

// finish sends f, now n bytes long, back to its sender.
func finish(f *frame.Frame, n int) {
	if f.Kind == frame.Ethernet {
		wire.Ethernet(f.Bytes()).Turn()
	}
	f.Trim(n)
	f.GSO, f.Hash = frame.GSO{}, 0
}
