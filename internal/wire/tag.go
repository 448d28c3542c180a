package wire

// A TagHead is the scratch memory that a VLAN tag is gathered from: the start of the tagged frame,
// up to and with the tag (IEEE 802.1Q, section 9.6; priority 0).
//
//	 0            6            12       14     16
//	+------------+------------+--------+------+----------------
//	| dst        | src        | 0x8100 | TCI  | rest of frame
//	+------------+------------+--------+------+----------------
type TagHead [MACsLen + VLANLen]byte

// Gather appends the pieces of a packet to parts, with a tag if it is not 0. The first piece must then have at least 12
// bytes.
func (h *TagHead) Gather(parts [][]byte, tag uint32, pieces ...[]byte) [][]byte {
	if tag != 0 {
		first := pieces[0]
		copy(h[:MACsLen], first)
		h[12], h[13] = TypeVLAN>>8, TypeVLAN&0xff
		h[14], h[15] = byte(tag&vlanMask>>8), byte(tag)
		parts = append(parts, h[:], first[MACsLen:])
		pieces = pieces[1:]
	}
	return append(parts, pieces...)
}

const vlanMask = 0xfff
