package arp

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/neighbour"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// reply turns a question into its answer: the target is at mac.
func (r *Responder) reply(f *frame.Frame, m *message, mac frame.MAC, flags Flags, b Outcome) (Outcome, frame.Verdict) {
	if m.V6 {
		// A question without an option is shorter than its answer: use the headroom.
		if n := neighbour.Len6 - f.Len(); n > 0 && f.Push(n) == nil {
			return NoRoom, frame.Continue
		}
		f.Trim(neighbour.Len6)
		to, bits := m.Src, uint8(0)
		if m.Told {
			to = m.SenderMAC
		}
		if flags&Router != 0 {
			bits |= wire.NARouter
		}
		if flags&Anycast == 0 {
			bits |= wire.NAOverride
		}
		neighbour.PutAdvert(f.Bytes(), m.Target, mac, bits, m.Sender, to)
	} else {
		f.Trim(neighbour.Len4) // of padding
		neighbour.PutARP(f.Bytes(), wire.ARPReply, m.Src, mac, m.Target, m.SenderMAC, m.Sender)
	}
	f.GSO, f.Hash = frame.GSO{}, 0
	return b, frame.Reply
}

// setSender replaces the sender's MAC in the frame and in the message. It returns false if the
// message has no room for one.
func setSender(f *frame.Frame, m *message, mac frame.MAC) bool {
	b := f.Bytes()
	if m.V6 {
		p, _ := wire.ParseIPv6(b[wire.EthernetLen:])
		n := wire.ND(p[wire.IPv6Len:])
		option := uint8(wire.SourceLinkLayer)
		if m.Kind == neighbour.Answer {
			option = wire.TargetLinkLayer
		}
		if !n.SetLinkLayer(option, mac) {
			return false
		}
		n.SetChecksum(p)
	} else {
		wire.ARP(b[wire.EthernetLen:]).SetSenderMAC(mac)
	}
	copy(b[6:], mac[:])
	f.GSO, f.GBP, f.Hash = frame.GSO{}, frame.GBP{}, 0
	return true
}

// setReceiver addresses an answer to another MAC.
func setReceiver(f *frame.Frame, m *message, mac frame.MAC) {
	b := f.Bytes()
	copy(b, mac[:])
	if !m.V6 {
		wire.ARP(b[wire.EthernetLen:]).SetTargetMAC(mac)
	}
}
