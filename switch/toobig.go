package vswitch

import (
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// TooBig returns the switch's own stage for slot TooBig. It answers unicast frames that are longer than
// their egress takes, at the rates of Config.TooBig for the whole switch. It turns such a frame, in
// place, into
//
//   - for IPv4 with DF, ICMP "fragmentation needed" (type 3, code 4) with the MTU of the
//     next hop (RFC 1191, section 4), 576 bytes at most (RFC 1812, section 4.3.2.3);
//   - for IPv6, ICMPv6 "packet too big" (RFC 4443, section 3.2), 1280 bytes at most.
//
// A bridge has no address of its own to send from. So, as Linux does for tunnels that are ports of a
// bridge, the stage answers in the name of the destination, with its IP address and MAC:
//
//	host A ---- 1500 ----> switch ---- tunnel, 1450 ----> host B
//	       <-- from B: fragmentation needed, MTU 1450
//
// VLAN tags inside the frame stay. Packets from a port for IP are answered in the same way. The MTU in
// the answer is that of IP: At.MTU without the Ethernet header and those tags. A superframe is measured
// by its segments, and its own header is quoted, as Linux does: the sender finds the connection by
// addresses, ports and sequence number.
//
// Other frames that are too long are dropped as frame.TooBig, and Stats.TooBig counts them by cause.
// Errors about errors are not sent (RFC 1122, section 3.2.2; RFC 4443, section 2.4), nor errors about
// IPv4 packets without DF: a bridge does not fragment.
//
// A VSI with a tunnel has this stage by default, after what is in the slot: if senders never learn the
// tunnel's MTU, ping works and TCP does not. [NoTooBig] turns it off. A VSI without a tunnel is silent,
// as a bridge is, unless the slot is filled.
func (s *Switch) TooBig() Stage { return &s.tooBig }

// NoTooBig is a Stage for slot TooBig that drops frames without telling the sender.
type NoTooBig struct{}

// Process drops f.
func (NoTooBig) Process(*frame.Frame, frame.At) frame.Verdict { return frame.Drop(frame.TooBig) }

// defaultSlots returns the stages that run after those of all slots. s.mu is held.
func (v *VSI) defaultSlots() (s Slots) {
	if slices.ContainsFunc(v.members, func(a *Attachment) bool { return a.port.tunnel != nil }) {
		s.TooBig = v.sw.TooBig()
	}
	return s
}
