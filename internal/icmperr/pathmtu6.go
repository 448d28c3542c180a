package icmperr

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/internal/wire"
)

const (
	MinMTU6 = 1280 // RFC 8200, section 5; no ICMPv6 error is longer (RFC 4443, section 2.4, c)
	Head6   = wire.IPv6Len + wire.ICMPLen
)

// answer6 turns f, whose IPv6 packet begins at ip, into ICMPv6 "packet too big".
func (t *PathMTU) answer6(f *frame.Frame, ip int, at frame.At) Outcome {
	b := f.Bytes()
	p, ok := wire.ParseIPv6(b[ip:])
	if !ok {
		return Malformed
	}
	mtu := at.MTU - ip
	switch {
	case min(len(p), f.SegLen()-ip) <= mtu:
		return fits
	case mtu < MinMTU6:
		return tinyMTU
	}
	return t.Forge6(f, ip, at.Tick, FragNeeded, mtu, min(len(p), MinMTU6-Head6))
}

// Forge6 is Forge4 for ICMPv6.
func (t *PathMTU) Forge6(f *frame.Frame, ip int, now frame.Tick, e Refusal, mtu, quote int) Outcome {
	b := f.Bytes()
	p, _ := wire.ParseIPv6(b[ip:])
	src, dst := p.Src(), p.Dst()
	switch o := Tellable6(p); {
	case o != Sent6:
		return o
	case !t.Allow(src[:], f.VNI, f.From, now):
		return limited
	}
	copy(b[ip+Head6:], p[:quote])
	a := b[ip : ip+Head6+quote]
	Put6(a, e, uint32(mtu), dst, src)
	finish(f, ip+len(a))
	return Sent6
}

// Tellable6 is Tellable4 for IPv6; the answer is Sent6.
func Tellable6(p wire.IPv6) Outcome {
	if !hostaddr.Is6(p.Src()) || !hostaddr.Is6(p.Dst()) {
		return notHost
	}
	switch u, ok := p.Upper(); {
	case !ok:
		return Malformed
	case u.Later:
		return fragment
	case u.Protocol == wire.ProtoICMPv6 && (u.At == len(p) || wire.ICMPv6IsError(p[u.At])):
		return icmpError
	}
	return Sent6
}
