package port

import "github.com/vxswitch/vxswitch/frame"

const (
	macLen   = 12 // both addresses of an Ethernet header
	ethLen   = 14
	vlanLen  = 4
	vlanMask = 0xfff
)

// unfit says why a Writer that takes no more than this cannot send the frame, or NotDropped. A
// switch gives it no such frames.
func unfit(o *frame.Out, takes frame.Offloads) frame.Reason {
	ip := o.F.Kind != frame.Ethernet
	switch {
	case ip != (takes&frame.IPOnly != 0), ip && o.Tag != 0, !takes.Take(o.F.GSO), o.Tag != 0 && takes&frame.OffloadVLAN == 0:
		return frame.BadKind
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

// gather appends to parts the packet that is in pieces, with the tag in it if that is
// not 0. The first piece then has at least 12 bytes.
func (h *tagHead) gather(parts [][]byte, tag uint32, pieces ...[]byte) [][]byte {
	if tag != 0 {
		first := pieces[0]
		copy(h[:macLen], first)
		h[12], h[13] = 0x81, 0x00
		h[14], h[15] = byte(tag&vlanMask>>8), byte(tag)
		parts = append(parts, h[:], first[macLen:])
		pieces = pieces[1:]
	}
	return append(parts, pieces...)
}

// dropAll gives every frame the same reason.
func dropAll(out []frame.Out, r frame.Reason) {
	for i := range out {
		out[i].Drop = r
	}
}
