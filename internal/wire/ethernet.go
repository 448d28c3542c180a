package wire

import "encoding/binary"

// EtherTypes.
const (
	TypeIPv4 = 0x0800
	TypeARP  = 0x0806
	TypeVLAN = 0x8100 // IEEE 802.1Q
	TypeIPv6 = 0x86dd
	TypeQinQ = 0x88a8 // IEEE 802.1ad
)

// Lengths of headers in bytes.
const (
	MACsLen     = 12 // both addresses of an Ethernet header
	EthernetLen = 14
	VLANLen     = 4
)

// maxTags is the number of VLAN tags that are skipped.
const maxTags = 2

// Ethernet is a view over an Ethernet frame, from the destination MAC on, without
// FCS: at least 14 bytes.
type Ethernet []byte

// ParseEthernet returns b as a frame; ok is false when it is shorter than its header.
func ParseEthernet(b []byte) (e Ethernet, ok bool) {
	if len(b) < EthernetLen {
		return nil, false
	}
	return b, true
}

// Dst returns the destination MAC.
func (e Ethernet) Dst() [6]byte { return [6]byte(e) }

// Src returns the source MAC.
func (e Ethernet) Src() [6]byte { return [6]byte(e[6:]) }

// Type returns the EtherType: of the packet, or of the first VLAN tag.
func (e Ethernet) Type() uint16 { return binary.BigEndian.Uint16(e[12:]) }

// Turn swaps the MACs, so that the frame goes back.
func (e Ethernet) Turn() {
	dst := e.Dst()
	copy(e, e[6:12])
	copy(e[6:], dst[:])
}

// Network returns the EtherType after up to two VLAN tags, and the offset of the packet. For a third or truncated tag it
// returns the type of the tag.
func (e Ethernet) Network() (etherType uint16, at int) {
	at = EthernetLen
	etherType = e.Type()
	for range maxTags {
		if etherType != TypeVLAN && etherType != TypeQinQ || len(e) < at+VLANLen {
			break
		}
		etherType = binary.BigEndian.Uint16(e[at+2:])
		at += VLANLen
	}
	return etherType, at
}
