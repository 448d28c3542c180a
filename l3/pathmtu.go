package l3

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A PathMTU is an Interface's stage for the slot TooBig of its segment, in front of
// another one: it takes packets that the gateway has routed there and that do not fit,
// tells their senders (RFC 1191; RFC 8201), or cuts those of IPv4 that may be cut. The
// pieces are injected, and may be overtaken by packets that fit.
type PathMTU struct{ i *Interface }

// PathMTU returns the interface's stage for the slot PathMTU.
func (i *Interface) PathMTU() PathMTU { return PathMTU{i} }

// Process answers with frame.Reenter: the error goes to the sender as any packet does.
func (s PathMTU) Process(f *frame.Frame, at frame.At) frame.Verdict {
	i := s.i
	if f.From.Port() != 0 {
		return frame.Continue // bridged
	}
	ip := 0
	if f.Kind == frame.Ethernet {
		e, ok := wire.ParseEthernet(f.Bytes())
		if !ok || e.Type() != wire.TypeIPv4 && e.Type() != wire.TypeIPv6 {
			return frame.Continue // injected, not routed
		}
		ip = wire.EthernetLen
	}
	if len(f.Bytes()) <= ip {
		return frame.Continue
	}
	mtu := at.MTU - ip
	x := packet{f: f, ip: ip, tick: at.Tick, worker: at.Worker}
	if p, ok := wire.ParseIPv4(f.Bytes()[ip:]); ok {
		if mtu < icmperr.MinMTU4 {
			return frame.Drop(frame.TooBig)
		}
		if !p.DF() {
			return fragment4(f, p, ip, mtu, at.From, at.To, i.cfg.Send)
		}
	} else if _, ok := wire.ParseIPv6(f.Bytes()[ip:]); ok {
		x.v6 = true
		if mtu = max(mtu, icmperr.MinMTU6); f.SegLen() <= ip+mtu {
			return frame.Drop(frame.TooBig) // a link that IPv6 may not have: nobody sends shorter packets for it
		}
	} else {
		return frame.Continue
	}
	r, ok := i.vrf.routes.Load().Lookup(x.src()) // where the answer goes
	if !ok || len(r.nextHops) == 0 {
		return frame.Drop(frame.TooBig)
	}
	h := r.pick(0)
	quote, ok := h.out.answers(&x, mtu, at.From) // packets that waited for their next hop share a place
	if !ok {
		return frame.Drop(frame.TooBig)
	}
	x.restoreTTL()
	old := f.Bytes()
	f.Trim(ip + x.head() + quote)
	h.out.write(f.Bytes(), old, &x, icmperr.FragNeeded, quote, uint32(mtu))
	f.GSO, f.Hash = frame.GSO{}, 0
	return i.send(&x, h)
}

// restoreTTL gives a packet that has been routed the TTL it came with: that is the packet its
// sender knows.
func (x *packet) restoreTTL() {
	b := x.f.Bytes()[x.ip:]
	if x.v6 {
		b[7]++
		return
	}
	old := binary.BigEndian.Uint16(b[8:])
	b[8]++
	wire.IPv4(b).SetChecksum(wire.Update(wire.IPv4(b).Checksum(), old, old+0x100))
}
