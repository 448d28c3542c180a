package arp

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

const (
	answer4 = wire.EthernetLen + wire.ARPLen
	ndAt    = wire.EthernetLen + wire.IPv6Len
	answer6 = ndAt + wire.NeighbourLen + wire.LinkLayerLen
)

// allNodes is where an advertisement goes when nobody can be named (RFC 4861, section
// 7.2.4), and its MAC (RFC 2464, section 7).
var (
	allNodes    = [16]byte{0xff, 2, 15: 1}
	allNodesMAC = [6]byte{0x33, 0x33, 0, 0, 0, 1}
)

// reply turns a question into its answer: the target is at mac.
func (r *Responder) reply(f *frame.Frame, m *message, mac frame.MAC, flags Flags, b Branch) (Branch, frame.Verdict) {
	if m.v6 {
		if !reply6(f, m, mac, flags) {
			return NoRoom, frame.Continue
		}
	} else {
		reply4(f, m, mac)
	}
	f.GSO, f.Hash = frame.GSO{}, 0
	return b, frame.Reply
}

func reply4(f *frame.Frame, m *message, mac frame.MAC) {
	f.Trim(answer4) // of padding
	b := f.Bytes()
	copy(b, m.src[:])
	copy(b[6:], mac[:])
	a := wire.ARP(b[wire.EthernetLen:])
	a.SetOp(wire.ARPReply)
	a.Turn() // what the request has as target MAC may be anything
	a.SetSenderMAC(mac)
	if m.told {
		a.SetTargetMAC(m.senderMAC)
	}
}

// reply6 writes an advertisement. A question without an option of its own is shorter than
// that; the answer grows to the front, where a frame may have room.
func reply6(f *frame.Frame, m *message, mac frame.MAC, flags Flags) bool {
	if n := answer6 - f.Len(); n > 0 && f.Push(n) == nil {
		return false
	}
	f.Trim(answer6)
	to, toMAC, bits := m.sender.As16(), m.src, uint8(wire.NASolicited)
	if m.told {
		toMAC = m.senderMAC
	}
	if m.sender.IsUnspecified() { // the address is taken
		to, toMAC, bits = allNodes, allNodesMAC, 0
	}
	if flags&Router != 0 {
		bits |= wire.NARouter
	}
	if flags&Anycast == 0 {
		bits |= wire.NAOverride
	}
	b := f.Bytes()
	copy(b, toMAC[:])
	copy(b[6:], mac[:])
	b[12], b[13] = wire.TypeIPv6>>8, wire.TypeIPv6&0xff
	p := wire.IPv6(b[wire.EthernetLen:])
	h := wire.IPv6Header{
		NextHeader: wire.ProtoICMPv6, HopLimit: 255, PayloadLen: wire.NeighbourLen + wire.LinkLayerLen,
		Src: m.target.As16(), Dst: to,
	}
	h.Put(p)
	wire.PutNeighbourAdvert(p[wire.IPv6Len:], bits, m.target.As16(), mac).SetChecksum(p)
	return true
}

// setSender puts another MAC in the place of the sender's, in the frame and in the
// message. It reports false when the message has no room for one.
func setSender(f *frame.Frame, m *message, mac frame.MAC) bool {
	b := f.Bytes()
	if m.v6 {
		p, _ := wire.ParseIPv6(b[wire.EthernetLen:])
		n := wire.ND(p[wire.IPv6Len:])
		option := uint8(wire.SourceLinkLayer)
		if m.answer {
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
	if !m.v6 {
		wire.ARP(b[wire.EthernetLen:]).SetTargetMAC(mac)
	}
}
