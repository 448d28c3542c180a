package port

import "github.com/vxswitch/vxswitch/frame"

const (
	macLen   = 12 // both addresses of an Ethernet header
	ethLen   = 14
	vlanLen  = 4
	vlanMask = 0xfff
)

// unfit says why a port of this package cannot send the frame, or NotDropped.
func unfit(o *frame.Out) frame.Reason {
	switch {
	case o.F.Kind != frame.Ethernet:
		return frame.BadKind
	case o.F.GSO != frame.GSO{}:
		return frame.SendFailed
	case o.Tag != 0 && o.F.Len() < macLen:
		return frame.Short
	}
	return frame.NotDropped
}

// A tagHead is the scratch memory a VLAN tag is gathered from: the start of the
// tagged frame, up to and with the tag (IEEE 802.1Q, section 9.6; priority 0).
//
//	 0            6            12       14     16
//	+------------+------------+--------+------+----------------
//	| dst        | src        | 0x8100 | TCI  | rest of frame
//	+------------+------------+--------+------+----------------
type tagHead [macLen + vlanLen]byte

// fill builds the head of packet, which has at least 12 bytes, and returns it.
// What follows it is packet[12:].
func (h *tagHead) fill(packet []byte, tag uint32) []byte {
	copy(h[:macLen], packet)
	h[12], h[13] = 0x81, 0x00
	h[14], h[15] = byte(tag&vlanMask>>8), byte(tag)
	return h[:]
}

// dropAll gives every frame the same reason.
func dropAll(out []frame.Out, r frame.Reason) {
	for i := range out {
		out[i].Drop = r
	}
}
