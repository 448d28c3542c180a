package l3

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A PathMTU is an Interface's path-MTU responder: the stage for the slot TooBig of its segment, in
// front of another one. It takes routed packets that do not fit the egress, and answers their
// senders (RFC 1191; RFC 8201) or fragments IPv4 without DF. The fragments are injected: packets
// that fit may overtake them.
type PathMTU struct{ i *Interface }

// PathMTU returns the interface's stage for the slot TooBig.
func (i *Interface) PathMTU() PathMTU { return PathMTU{i} }

// Process returns frame.Reenter for an answer, which is routed to the sender.
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
			return frame.Drop(frame.TooBig) // below the minimum MTU of IPv6: no host sends shorter packets
		}
	} else {
		return frame.Continue
	}
	dst := x.src() // of the answer
	r, ok := i.vrf.routes.Load().Lookup(dst)
	if !ok || len(r.paths) == 0 {
		return frame.Drop(frame.TooBig)
	}
	h := r.pick(0)
	quote, ok := h.out.answers(&x, mtu, at.From) // packets that waited for their next hop count for the switch
	if !ok {
		return frame.Drop(frame.TooBig)
	}
	x.own = true
	x.restoreTTL()
	old := f.Bytes()
	f.Trim(ip + x.head() + quote)
	h.out.write(f.Bytes(), old, &x, icmperr.FragNeeded, quote, uint32(mtu))
	f.GSO, f.Hash = frame.GSO{}, 0
	return i.send(&x, r, h, dst)
}

// restoreTTL undoes the decrement of the TTL: the error quotes the packet as its sender knows it.
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
