package vtep

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// ECN fields (RFC 3168, section 5).
const (
	notECT = 0
	ect1   = 1
	ect0   = 2
	ce     = 3
)

// Flags beside the ECN field in decapsulated.
const (
	anomalous = 1 << 4 // a combination that should not occur (RFC 6040, section 4.2)
	dropped   = 1 << 5
)

// decapsulated is figure 4 of RFC 6040: rows are the inner field, columns the outer.
var decapsulated = [4][4]uint8{
	notECT: {notECT: notECT, ect1: notECT | anomalous, ect0: notECT | anomalous, ce: dropped | anomalous},
	ect1:   {notECT: ect1, ect1: ect1, ect0: ect1 | anomalous, ce: ce},
	ect0:   {notECT: ect0, ect1: ect1, ect0: ect0, ce: ce},
	ce:     {notECT: ce, ect1: ce | anomalous, ect0: ce, ce: ce},
}

// congestion combines the ECN field of the outer header with that of the frame, in place, by RFC 6040, section
// 4.2. Frames without an IP header pass unchanged.
func (v *VTEP) congestion(f *frame.Frame, outer uint8) frame.Reason {
	b := f.Bytes()
	var in innerIP
	in.find(f)
	if !in.isIP {
		return frame.NotDropped
	}
	was := in.tos & 3
	now := decapsulated[was][outer&3]
	if now&anomalous != 0 {
		v.ecn.Add(1)
	}
	if now&dropped != 0 {
		if badSource(f) {
			return frame.BadSourceMAC // takes precedence
		}
		return frame.ECN
	}
	if now &= 3; now != was {
		setTOS(b[in.at:], in.is4, in.tos&^3|now)
	}
	return frame.NotDropped
}

// setTOS writes the TOS or traffic class of an IP header and updates the IPv4 checksum.
func setTOS(ip []byte, is4 bool, tos uint8) {
	if !is4 {
		ip[0], ip[1] = ip[0]&0xf0|tos>>4, ip[1]&0xf|tos<<4
		return
	}
	old := binary.BigEndian.Uint16(ip)
	ip[1] = tos
	sum := binary.BigEndian.Uint16(ip[10:])
	binary.BigEndian.PutUint16(ip[10:], wire.Update(sum, old, binary.BigEndian.Uint16(ip)))
}
