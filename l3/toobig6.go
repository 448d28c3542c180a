package l3

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

const (
	minMTU6 = 1280 // RFC 8200, section 5; no ICMPv6 error is longer (RFC 4443, section 2.4, c)
	head6   = wire.IPv6Len + wire.ICMPLen
)

// answer6 turns f, whose IPv6 packet begins at ip, into ICMPv6 "packet too big".
func (t *TooBig) answer6(f *frame.Frame, ip int, at frame.At) outcome {
	b := f.Bytes()
	p, ok := wire.ParseIPv6(b[ip:])
	if !ok {
		return malformed
	}
	mtu := at.MTU - ip
	switch {
	case min(len(p), f.SegLen()-ip) <= mtu:
		return fits
	case mtu < minMTU6:
		return tinyMTU
	}
	return t.forge6(f, ip, at.Tick, fragNeeded, mtu, min(len(p), minMTU6-head6))
}

// forge6 is forge4 for ICMPv6.
func (t *TooBig) forge6(f *frame.Frame, ip int, now frame.Tick, e refusal, mtu, quote int) outcome {
	b := f.Bytes()
	p, _ := wire.ParseIPv6(b[ip:])
	src, dst := p.Src(), p.Dst()
	switch o := tellable6(p); {
	case o != sent6:
		return o
	case !t.limit.allow(src[:], f.VNI, f.From, now):
		return limited
	}
	copy(b[ip+head6:], p[:quote])
	a := b[ip : ip+head6+quote]
	putError6(a, codes6[e], uint32(mtu), dst, src)
	finish(f, ip+len(a))
	return sent6
}

// tellable6 is tellable4 for IPv6; the answer is sent6.
func tellable6(p wire.IPv6) outcome {
	if !isHost6(p.Src()) || !isHost6(p.Dst()) {
		return notHost
	}
	switch u, ok := p.Upper(); {
	case !ok:
		return malformed
	case u.Later:
		return fragment
	case u.Protocol == wire.ProtoICMPv6 && (u.At == len(p) || wire.ICMPv6IsError(p[u.At])):
		return icmpError
	}
	return sent6
}

// isHost6 reports whether an address may be that of one host on a network: not
// unspecified, loopback or multicast (RFC 4291, section 2).
func isHost6(a [16]byte) bool {
	last := a[15]
	a[15] = 0
	return a[0] != 0xff && (a != [16]byte{} || last > 1)
}
