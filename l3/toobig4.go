package l3

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

const (
	ttl = 64

	minMTU4   = 68  // RFC 791, section 3.2
	maxError4 = 576 // longest ICMP error, with its IP header (RFC 1812, section 4.3.2.3)
	head4     = wire.IPv4Len + wire.ICMPLen
	minQuote  = 8 // bytes behind the quoted IP header (RFC 792)

	tosControl = 0xc0 // precedence of ICMP errors: internetwork control (RFC 1812, section 4.3.2.5)
)

// answer4 turns f, whose IPv4 packet begins at ip, into ICMP "fragmentation needed".
func (t *TooBig) answer4(f *frame.Frame, ip int, at frame.At) outcome {
	b := f.Bytes()
	p, ok := wire.ParseIPv4(b[ip:])
	if !ok || !p.ChecksumOK() {
		return malformed
	}
	mtu := at.MTU - ip
	quote := min(len(p), maxError4-head4, mtu-head4)
	switch {
	case min(len(p), f.SegLen()-ip) <= mtu:
		return fits
	case mtu < minMTU4 || quote < p.HeaderLen()+minQuote:
		return tinyMTU
	}
	return t.forge4(f, ip, at.Tick, fragNeeded, mtu, quote)
}

// forge4 turns f, whose IPv4 packet begins at ip, into an ICMP error from the host the packet
// was for, with the first quote bytes of it. The frame is long enough.
func (t *TooBig) forge4(f *frame.Frame, ip int, now frame.Tick, e refusal, mtu, quote int) outcome {
	b := f.Bytes()
	p, _ := wire.ParseIPv4(b[ip:])
	src, dst := p.Src(), p.Dst()
	switch o := tellable4(p); {
	case (o == sent4 || o == icmpError) && e == fragNeeded && !p.DF():
		return fragmenting
	case o != sent4:
		return o
	case !t.limit.allow(src[:], f.VNI, f.From, now):
		return limited
	}
	copy(b[ip+head4:], p[:quote])
	a := b[ip : ip+head4+quote]
	putError4(a, codes4[e], uint32(mtu), dst, src)
	finish(f, ip+len(a))
	return sent4
}

// tellable4 is why the sender of a packet is not to be told of an error about it, or sent4.
func tellable4(p wire.IPv4) outcome {
	switch {
	case !isHost4(p.Src()) || !isHost4(p.Dst()):
		return notHost
	case p.FragmentOffset() != 0:
		return fragment
	case p.Protocol() == wire.ProtoICMP && (len(p.Payload()) == 0 || wire.ICMPIsError(p.Payload()[0])):
		return icmpError
	}
	return sent4
}

// isHost4 reports whether an address may be that of one host on a network: not this
// network, loopback, multicast, reserved or broadcast (RFC 1122, section 3.2.1.3).
func isHost4(a [4]byte) bool { return a[0] != 0 && a[0] != 127 && a[0] < 224 }

// finish sends f, now n bytes long, back to its sender as a frame of its own.
func finish(f *frame.Frame, n int) {
	if f.Kind == frame.Ethernet {
		wire.Ethernet(f.Bytes()).Turn()
	}
	f.Trim(n)
	f.GSO, f.Hash = frame.GSO{}, 0
}
