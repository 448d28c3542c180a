package vswitch

import (
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// TooBig returns the switch's own stage for the slot TooBig, at the rates of Config.TooBig for
// the whole switch. It answers unicast frames that are longer than their egress takes: what it
// answers it turns, in place, into
//
//   - for IPv4 with DF, ICMP "fragmentation needed" (type 3, code 4) with the MTU of the
//     next hop (RFC 1191, section 4), 576 bytes at most (RFC 1812, section 4.3.2.3);
//   - for IPv6, ICMPv6 "packet too big" (RFC 4443, section 3.2), 1280 bytes at most.
//
// A bridge has no address to say so from; so the answer is forged, as Linux does for its tunnels
// that are ports of a bridge, from the address, IP and MAC, that the frame was for, to the one
// it came from:
//
//	host A ---- 1500 ----> switch ---- tunnel, 1450 ----> host B
//	       <-- from B: fragmentation needed, MTU 1450
//
// VLAN tags inside the frame stay. A packet of an IP port is answered likewise. The MTU is that
// of IP: At.MTU less the Ethernet header and those tags. A superframe is judged by its segments;
// its own header is quoted, as Linux does: the sender's stack knows packets by addresses, ports
// and sequence number.
//
// What else is too long is dropped as frame.TooBig, and Stats.TooBig names every cause. No host is
// told of errors about errors (RFC 1122, section 3.2.2; RFC 4443, section 2.4), nor that an IPv4
// packet without DF is too long: a bridge does not fragment.
//
// In a VSI that has a tunnel it is there by itself, behind what the slot holds: a sender that
// never hears of the tunnel's MTU has ping, and no TCP. [NoTooBig] ends that. A VSI without a
// tunnel is as silent as any bridge, unless the slot is filled.
func (s *Switch) TooBig() Stage { return &s.tooBig }

// NoTooBig is a Stage for the slot TooBig: what is too long is dropped, and no sender is told.
type NoTooBig struct{}

// Process drops f.
func (NoTooBig) Process(*frame.Frame, frame.At) frame.Verdict { return frame.Drop(frame.TooBig) }

// defaultSlots returns the stages behind those of all slots. s.mu is held.
func (v *VSI) defaultSlots() (s Slots) {
	if slices.ContainsFunc(v.members, func(a *Attachment) bool { return a.port.tunnel != nil }) {
		s.TooBig = v.sw.TooBig()
	}
	return s
}
