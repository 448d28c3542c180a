package encap

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
)

// Bits of a [VXLAN] header for group policy (draft-smith-vxlan-group-policy-05, section 2.1):
//
//	bit 63       59      54    51   48 47             32
//	   |G|R|R|R|I|R|R|R|R|D|R|R|A|R|R|R| group policy id |
const (
	FlagGBP       VXLAN = 1 << 63 // G: the other bits are valid
	FlagDontLearn VXLAN = 1 << 54 // D
	FlagApplied   VXLAN = 1 << 51 // A
	GBPMask       VXLAN = FlagGBP | FlagDontLearn | FlagApplied | 0xffff<<32
)

// GBP returns the mark in a header, the zero mark without G.
func (h VXLAN) GBP() (g frame.GBP) {
	if h&FlagGBP != 0 {
		g = frame.GBP{ID: uint16(h >> 32), DontLearn: h&FlagDontLearn != 0, Applied: h&FlagApplied != 0}
	}
	return g
}

// PutVXLANGBP is PutVXLAN with a mark. For the zero mark it does not set G, as Linux does.
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
