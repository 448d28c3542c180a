package encap

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
)

// Bits of a [VXLAN] header that the group policy extension has taken out of the reserved
// ones (draft-smith-vxlan-group-policy-05, section 2.1):
//
//	bit 63       59      54    51   48 47             32
//	   |G|R|R|R|I|R|R|R|R|D|R|R|A|R|R|R| group policy id |
const (
	FlagGBP       VXLAN = 1 << 63 // G: the others mean something
	FlagDontLearn VXLAN = 1 << 54 // D
	FlagApplied   VXLAN = 1 << 51 // A
	GBPMask       VXLAN = FlagGBP | FlagDontLearn | FlagApplied | 0xffff<<32
)

// GBP returns the mark in a header, the zero one without G.
func (h VXLAN) GBP() (g frame.GBP) {
	if h&FlagGBP != 0 {
		g = frame.GBP{ID: uint16(h >> 32), DontLearn: h&FlagDontLearn != 0, Applied: h&FlagApplied != 0}
	}
	return g
}

// PutVXLANGBP is PutVXLAN with a mark. The zero mark makes the header of PutVXLAN: as in
// Linux there is no G without a mark.
func PutVXLANGBP(b []byte, vni frame.VNI, g frame.GBP) {
	h := FlagVNI | VXLAN(vni&frame.MaxVNI)<<8
	if g != (frame.GBP{}) {
		h |= FlagGBP | VXLAN(g.ID)<<32
	}
	if g.DontLearn {
		h |= FlagDontLearn
	}
	if g.Applied {
		h |= FlagApplied
	}
	binary.BigEndian.PutUint64(b, uint64(h))
}

// Used returns the bits of the tunnel's header, as a big endian number, that the
// encapsulation has a use for, with gbp those of group policy too; 0 without a header.
func (t Type) Used(gbp bool) uint64 {
	switch {
	case t == TypeGPE:
		return uint64(^GPEReservedMask)
	case t == TypeVXLAN && gbp:
		return uint64(^ReservedMask | GBPMask)
	case t == TypeVXLAN:
		return uint64(^ReservedMask)
	}
	return 0
}
