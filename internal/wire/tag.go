package wire

import "encoding/binary"

// A TagHead is the scratch memory that a VLAN tag is gathered from: the start of the tagged frame,
// up to and with the tag (IEEE 802.1Q, section 9.6).
//
//	 0            6            12     14     16
//	+------------+------------+------+------+----------------
//	| dst        | src        | TPID | TCI  | rest of frame
//	+------------+------------+------+------+----------------
type TagHead [MACsLen + VLANLen]byte

// Gather appends the pieces of a packet to parts, with a tag (TPID and TCI) if it is not 0. The first piece must then have
// at least 12 bytes.
func (h *TagHead) Gather(parts [][]byte, tag uint32, pieces ...[]byte) [][]byte {
	if tag != 0 {
		first := pieces[0]
		copy(h[:MACsLen], first)
		binary.BigEndian.PutUint32(h[MACsLen:], tag)
		parts = append(parts, h[:], first[MACsLen:])
		pieces = pieces[1:]
	}
	return append(parts, pieces...)
}
