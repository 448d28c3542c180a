package arp

import (
	"net"
	"net/netip"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/ethernet"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// refreshBurst is how many neighbours are asked in one tick.
const refreshBurst = 256

// Tend is the table's housekeeping, for the switch's, which calls it with every tick: it
// ages entries, and asks those that have not been heard for long if Refresh is set.
func (r *Responder) Tend(now frame.Tick) {
	if r.tended.Swap(uint64(now)+1) == uint64(now)+1 {
		return // by another stage of the segment
	}
	if !r.cfg.Refresh {
		r.table.Sweep(now, nil)
		return
	}
	budget := refreshBurst
	r.table.Sweep(now, func(e Entry) {
		if e.From.Peer() != 0 || budget == 0 { // behind a tunnel: its own VTEP asks
			return
		}
		if f, err := r.question(e); err == nil && r.cfg.Inject(&f) {
			budget--
			r.asked.Add(1)
		}
	})
}

// question makes the frame that asks a neighbour, and nobody else, whether it is there.
// The answer comes to the VTEP's own MAC, where Process notes it.
func (r *Responder) question(e Entry) (frame.Frame, error) {
	if e.IP.Is6() {
		return r.solicitation(e), nil
	}
	from := netip.IPv4Unspecified()
	if g := r.gateway.Load(); g != nil {
		for _, ip := range g.IPs {
			if ip.Is4() {
				from = ip
			}
		}
	}
	own := r.cfg.MAC.HardwareAddr()
	p, err := arp.NewPacket(arp.OperationRequest, own, from, make(net.HardwareAddr, 6), e.IP)
	if err != nil {
		return frame.Frame{}, err
	}
	body, err := p.MarshalBinary()
	if err != nil {
		return frame.Frame{}, err
	}
	b, err := (&ethernet.Frame{Destination: e.MAC.HardwareAddr(), Source: own, EtherType: ethernet.EtherTypeARP, Payload: body}).MarshalBinary()
	return frame.Make(b), err
}

// solicitation is the question of IPv6, from the link-local address that goes with the
// VTEP's own MAC (RFC 4291, appendix A).
func (r *Responder) solicitation(e Entry) frame.Frame {
	m := r.cfg.MAC
	own := [16]byte{0xfe, 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]}
	b := make([]byte, answer6)
	copy(b, e.MAC[:])
	copy(b[6:], m[:])
	b[12], b[13] = wire.TypeIPv6>>8, wire.TypeIPv6&0xff
	p := wire.IPv6(b[wire.EthernetLen:])
	h := wire.IPv6Header{
		NextHeader: wire.ProtoICMPv6, HopLimit: 255, PayloadLen: wire.NeighbourLen + wire.LinkLayerLen,
		Src: own, Dst: e.IP.As16(),
	}
	h.Put(p)
	wire.PutNeighbourSolicitation(p[wire.IPv6Len:], e.IP.As16(), m).SetChecksum(p)
	return frame.Make(b)
}
