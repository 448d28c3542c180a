package wire

import "encoding/binary"

// TPIDs of VLAN tags from before IEEE 802.1ad that switches and network cards still support.
const (
	typeQinQ1 = 0x9100
	typeQinQ2 = 0x9200
	typeQinQ3 = 0x9300
)

// If an Ethernet header has a length instead of a type, IEEE 802.2 LLC follows.
const (
	minType      = 0x0600 // less than this is a length (IEEE 802.3, section 3.2.6), or nothing
	typeJumboLLC = 0x8870 // LLC of a frame that is too long for a length (IEEE 802.1AC, annex)
	snapLen      = 8      // LLC, OUI, protocol (RFC 1042)
)

// SAPs of LLC headers; the lowest bit is not part of their name (IEEE 802.2, section 3.3.1).
const (
	sapSNAP = 0xaa
	sapIP   = 0x06 // RFC 948
	sapARP  = 0x98
)

// OUIs of SNAP headers whose protocol is an EtherType.
const (
	ouiEthernet = 0x000000 // RFC 1042
	ouiBridge   = 0x0000f8 // IEEE 802.1H: what bridges to other media put there
)

// maxSNAP is the number of LLC/SNAP headers that are skipped.
const maxSNAP = 2

// IsTag reports whether an EtherType is that of a VLAN tag: 802.1Q, 802.1ad or an older number.
func IsTag(etherType uint16) bool {
	switch etherType {
	case TypeVLAN, TypeQinQ, typeQinQ1, typeQinQ2, typeQinQ3:
		return true
	}
	return false
}

// Open returns the EtherType and offset of the packet as the most lenient receiver sees it, such as Windows or a bridge to
// a wireless network: after VLAN tags and 802.2 LLC/SNAP headers in any order, at most two of each. Like some receivers, it
// ignores the length in LLC frames. For LLC without an Ethernet packet, it returns the length as the type, and the offset
// of LLC.
//
// ok is false for frames that a receiver may parse and Open cannot: too many or truncated headers, LLC with the SAP of
// SNAP, IP or ARP in a form other than that of RFC 1042, and IP, ARP and tags of other OUIs. Filters must drop these.
func (e Ethernet) Open() (etherType uint16, at int, ok bool) {
	etherType, at = e.Type(), EthernetLen
	if etherType == TypeIPv4 || etherType == TypeIPv6 { // nearly all
		return etherType, at, true
	}
	for tags, snaps := 0, 0; ; {
		switch {
		case IsTag(etherType):
			if tags++; tags > maxTags || len(e) < at+VLANLen {
				return etherType, at, false
			}
			etherType = binary.BigEndian.Uint16(e[at+2:])
			at += VLANLen
		case etherType >= minType && etherType != typeJumboLLC:
			return etherType, at, true
		default:
			inside, is, ok := snap(e[at:])
			if !is {
				return etherType, at, ok
			}
			if snaps++; snaps > maxSNAP {
				return etherType, at, false
			}
			etherType = inside
			at += snapLen
		}
	}
}

// snap parses a SNAP header. It returns whether the protocol is an EtherType, and whether the header is unambiguous.
func snap(b []byte) (etherType uint16, is, ok bool) {
	if len(b) < 2 {
		return 0, false, true
	}
	switch b[0] &^ 1 {
	case sapIP, sapARP:
		return 0, false, false
	case sapSNAP:
	default:
		return 0, false, b[1]&^1 != sapSNAP
	}
	if len(b) < snapLen || b[0] != sapSNAP || b[1] != sapSNAP || b[2] != 3 {
		return 0, false, false
	}
	etherType = binary.BigEndian.Uint16(b[6:])
	switch uint32(b[3])<<16 | uint32(b[4])<<8 | uint32(b[5]) {
	case ouiEthernet, ouiBridge:
		return etherType, true, true
	}
	// Some receivers ignore the OUI.
	return 0, false, etherType != TypeIPv4 && etherType != TypeIPv6 && etherType != TypeARP && !IsTag(etherType)
}
