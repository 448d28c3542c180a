package l3

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// refuse answers a packet with an ICMP error: in its own buffer, or if the error does not fit
// there, in a new frame. It drops a packet that gets no answer for the reason.
func (i *Interface) refuse(x *packet, e icmperr.Refusal, r frame.Reason) frame.Verdict {
	quote, ok := i.answers(x, 0, x.f.Origin())
	if !ok {
		return frame.Drop(r)
	}
	f := x.f
	grow := x.ip + x.head() + quote - f.Len()
	if grow > f.Headroom() {
		if !i.sendError(x, e, quote) {
			return frame.Drop(r)
		}
		return frame.Consume
	}
	old := f.Bytes()
	if grow > 0 {
		f.Push(grow)
	} else {
		f.Trim(f.Len() + grow)
	}
	i.write(f.Bytes(), old, x, e, quote, 0)
	f.GSO, f.Hash = frame.GSO{}, 0
	return frame.Reply
}

// report sends an ICMP error about a packet that is still forwarded.
func (i *Interface) report(x *packet, e icmperr.Refusal) {
	if quote, ok := i.answers(x, 0, x.f.Origin()); ok {
		i.sendError(x, e, quote)
	}
}

// sendError sends an error in a new frame.
func (i *Interface) sendError(x *packet, e icmperr.Refusal, quote int) bool {
	g := frame.Make(make([]byte, x.ip+x.head()+quote))
	g.Kind = x.f.Kind
	i.write(g.Bytes(), x.f.Bytes(), x, e, quote, 0)
	return i.cfg.Send(returnDest(x.f), &g)
}

// returnDest returns the Dest of an answer in a new frame: 0, the FDB, for Ethernet.
func returnDest(f *frame.Frame) frame.Dest {
	if f.Kind == frame.Ethernet {
		return 0
	}
	return f.From
}

// head returns the length of the headers before the quoted packet.
func (x *packet) head() int {
	if x.v6 {
		return icmperr.Head6
	}
	return icmperr.Head4
}

// answers reports whether a packet may be answered with an ICMP error now, and how much of it
// to quote. from has a share of the rate.
func (i *Interface) answers(x *packet, mtu int, from frame.Dest) (quote int, ok bool) {
	if quote, ok = i.answerable(x, mtu); !ok {
		return 0, false
	}
	src := x.src().As16()
	if !i.vrf.gateway.limit.Allow(src[:], i.cfg.VNI, from, x.tick) {
		i.counts.Of(x.worker).limited.Count(1, x.worker)
		return 0, false
	}
	i.counts.Of(x.worker).errors.Count(1, x.worker)
	return quote, true
}

// answerable is answers without the rate limits. There are no errors about errors or later
// fragments, and none without a source address (RFC 1122, section 3.2.2; RFC 4443, section 2.4).
func (i *Interface) answerable(x *packet, mtu int) (quote int, ok bool) {
	b := x.f.Bytes()[x.ip:]
	if x.v6 {
		p, ok := wire.ParseIPv6(b)
		return min(len(p), icmperr.MinMTU6-icmperr.Head6), ok && icmperr.Tellable6(p) == icmperr.Sent6 && i.addr6() != [16]byte{}
	}
	p, ok := wire.ParseIPv4(b)
	quote = min(len(p), icmperr.MaxError4-icmperr.Head4)
	if mtu != 0 {
		quote = min(quote, mtu-icmperr.Head4)
	}
	return quote, ok && icmperr.Tellable4(p) == icmperr.Sent4 && i.addr4() != [4]byte{}
}

// write puts the error about the packet at old[x.ip:] into b. The two may overlap.
func (i *Interface) write(b, old []byte, x *packet, e icmperr.Refusal, quote int, mtu uint32) {
	var macs [12]byte
	if x.ip != 0 {
		copy(macs[:], old)
	}
	at := x.ip + x.head()
	var src [16]byte // of IPv4, the first four
	if copy(src[:4], old[x.ip+12:]); x.v6 {
		src = [16]byte(old[x.ip+8:])
	}
	copy(b[at:], old[x.ip:x.ip+quote])
	a := b[x.ip : at+quote]
	if x.ip != 0 {
		copy(b, macs[6:])
		copy(b[6:], macs[:6])
		b[12], b[13] = wire.TypeIPv4>>8, wire.TypeIPv4&0xff
		if x.v6 {
			b[12], b[13] = wire.TypeIPv6>>8, wire.TypeIPv6&0xff
		}
	}
	if x.v6 {
		icmperr.Put6(a, e, mtu, i.addr6(), src)
	} else {
		icmperr.Put4(a, e, mtu, i.addr4(), [4]byte(src[:4]))
	}
}

// addr4 returns the source of ICMP errors: the interface's address, or without a routable one
// (L3VNI, IP port, gateway of /32s) that of another interface of the VRF (RFC 1812, section
// 4.3.2.4).
func (i *Interface) addr4() [4]byte {
	if other := i.vrf.errorSource.Load().ip4; !routable4(i.ip4) && other != [4]byte{} {
		return other
	}
	return i.ip4
}

func (i *Interface) addr6() [16]byte {
	if i.ip6 != [16]byte{} {
		return i.ip6
	}
	return i.vrf.errorSource.Load().ip6
}

// An errorSource holds the source addresses of ICMP errors from interfaces without one: those of
// the interface with the lowest VNI that has one.
type errorSource struct {
	ip4 [4]byte
	ip6 [16]byte
}

// chooseErrorSource updates the VRF's errorSource. v.mu is held.
func (v *VRF) chooseErrorSource() {
	var s errorSource
	first4, first6 := frame.MaxVNI+1, frame.MaxVNI+1
	for vni, i := range v.interfaces {
		if routable4(i.ip4) && vni < first4 {
			s.ip4, first4 = i.ip4, vni
		}
		if i.ip6 != [16]byte{} && vni < first6 {
			s.ip6, first6 = i.ip6, vni
		}
	}
	v.errorSource.Store(&s)
}
