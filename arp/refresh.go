package arp

import (
	"net"
	"net/netip"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/ethernet"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// refreshBurst is how many neighbours are asked in one tick, or more where so few would not
// do to ask all of them in time.
const refreshBurst = 256

// Housekeep is the table's housekeeping, for the switch's, which calls it with every tick: it
// ages entries, and asks those that have not been heard for long if Refresh is set.
func (r *Responder) Housekeep(now frame.Tick) {
	if r.housekept.Swap(uint64(now)+1) == uint64(now)+1 {
		return // by another stage of the segment
	}
	if !r.cfg.Refresh {
		r.table.Sweep(now, nil)
		return
	}
	budget := max(refreshBurst, r.table.Len()/max(int(r.table.ageing/8), 1))
	r.table.Sweep(now, func(e Entry) bool {
		if e.From.Peer() != 0 || budget == 0 { // behind a tunnel: its own VTEP asks
			return false
		}
		f, err := r.question(e)
		if err != nil || !r.cfg.Inject(&f) {
			return false
		}
		budget--
		r.asked.Add(1)
		return true
	})
}

// question makes the frame that asks a neighbour, and nobody else, whether it is there.
// The answer comes to the VTEP's own MAC, where Process notes it.
func (r *Responder) question(e Entry) (frame.Frame, error) {
	from := netip.IPv4Unspecified()
	if g := r.gateway.Load(); g != nil {
		for _, ip := range g.IPs {
			if ip.Is4() {
				from = ip
			}
		}
	}
	if e.IP.Is6() {
		from = LinkLocal(r.cfg.MAC)
	}
	return Question(e.IP, e.MAC, from, r.cfg.MAC)
}

// Question makes the frame that asks for the MAC of a target, from an address and a MAC:
// an ARP request or a neighbour solicitation. It goes to one MAC, or with the zero MAC to
// all.
func Question(target netip.Addr, to frame.MAC, from netip.Addr, mac frame.MAC) (frame.Frame, error) {
	if target.Is6() {
		return solicitation(target, to, from, mac), nil
	}
	if to.IsZero() {
		to = frame.Broadcast
	}
	own := mac.HardwareAddr()
	p, err := arp.NewPacket(arp.OperationRequest, own, from, make(net.HardwareAddr, 6), target)
	if err != nil {
		return frame.Frame{}, err
	}
	body, err := p.MarshalBinary()
	if err != nil {
		return frame.Frame{}, err
	}
	b, err := (&ethernet.Frame{Destination: to.HardwareAddr(), Source: own, EtherType: ethernet.EtherTypeARP, Payload: body}).MarshalBinary()
	return frame.Make(b), err
}

// LinkLocal returns the link-local address of IPv6 that goes with a MAC (RFC 4291,
// appendix A).
func LinkLocal(m frame.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

func solicitation(target netip.Addr, to frame.MAC, from netip.Addr, mac frame.MAC) frame.Frame {
	dst := target.As16()
	if to.IsZero() {
		dst = wire.SolicitedNode(dst)
		to = frame.MAC{0x33, 0x33, 0xff, dst[13], dst[14], dst[15]} // RFC 2464, section 7
	}
	b := make([]byte, answer6)
	copy(b, to[:])
	copy(b[6:], mac[:])
	b[12], b[13] = wire.TypeIPv6>>8, wire.TypeIPv6&0xff
	p := wire.IPv6(b[wire.EthernetLen:])
	h := wire.IPv6Header{
		NextHeader: wire.ProtoICMPv6, HopLimit: 255, PayloadLen: wire.NeighbourLen + wire.LinkLayerLen,
		Src: from.As16(), Dst: dst,
	}
	h.Put(p)
	wire.PutNeighbourSolicitation(p[wire.IPv6Len:], target.As16(), mac).SetChecksum(p)
	return frame.Make(b)
}
