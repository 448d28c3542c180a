package wire

// Types of the ICMPv6 messages of neighbour discovery (RFC 4861, section 4).
const (
	RouterSolicitation    = 133
	RouterAdvertisement   = 134
	NeighbourSolicitation = 135
	NeighbourAdvert       = 136
)

// Options of these messages that carry the link-layer address of the sender, and of the
// target.
const (
	SourceLinkLayer = 1
	TargetLinkLayer = 2
)

// Flags of a neighbour advertisement (RFC 4861, section 4.4).
const (
	NARouter    = 0x80
	NASolicited = 0x40
	NAOverride  = 0x20
)

// Lengths of the messages without options, and of a link-layer option for Ethernet.
const (
	routerSolicitationLen = 8
	routerAdvertLen       = 16
	NeighbourLen          = 24 // solicitation and advertisement
	LinkLayerLen          = 8
	ndHopLimit            = 255
	ndOptionUnit          = 8 // what options count their length in
	linkLayerUnits        = 1
)

// ND is a view of a neighbour discovery message: the ICMPv6 header, the fields of its type, options.
type ND []byte

// ParseND returns the message in an IPv6 packet, header included. ok is false for other packets and for messages that nodes
// must discard by RFC 4861: a hop limit other than 255, a code other than 0, a truncated message or option, an option of
// length 0. It checks neither addresses nor the checksum; see [ND.Valid].
func ParseND(p IPv6) (n ND, ok bool) {
	if p.NextHeader() != ProtoICMPv6 || p[7] != ndHopLimit || len(p) < IPv6Len+routerSolicitationLen {
		return nil, false
	}
	n = ND(p[IPv6Len:])
	at := n.options()
	if n[1] != 0 || at == 0 || at > len(n) {
		return nil, false
	}
	for at < len(n) {
		if len(n) < at+2 || n[at+1] == 0 {
			return nil, false
		}
		if at += int(n[at+1]) * ndOptionUnit; at > len(n) {
			return nil, false
		}
	}
	return n, true
}

// options returns the offset of the options, 0 for other types.
func (n ND) options() int {
	switch n[0] {
	case RouterSolicitation:
		return routerSolicitationLen
	case RouterAdvertisement:
		return routerAdvertLen
	case NeighbourSolicitation, NeighbourAdvert:
		return NeighbourLen
	}
	return 0
}

// Type returns the type of the message.
func (n ND) Type() uint8 { return n[0] }

// Valid reports whether the checksum is right; p is the packet with n.
func (n ND) Valid(p IPv6) bool {
	return Fold(n.sum(p)) == 0xffff
}

// sum adds up the message and its pseudo header, whose addresses are in front of the message.
func (n ND) sum(p IPv6) uint64 { return Sum(p[8:IPv6Len+len(n)], uint64(ProtoICMPv6)+uint64(len(n))) }

// Target returns the target of a neighbour solicitation or advertisement.
func (n ND) Target() [16]byte { return [16]byte(n[8:]) }

// Flags returns the flags of a neighbour advertisement.
func (n ND) Flags() uint8 { return n[4] }

// LinkLayer returns the MAC in the first option of a kind with the length for Ethernet.
func (n ND) LinkLayer(option uint8) (mac [6]byte, ok bool) {
	if at := n.linkLayer(option); at != 0 {
		return [6]byte(n[at:]), true
	}
	return mac, false
}

// SetLinkLayer sets the MAC that LinkLayer returns; ok is false if there is none.
func (n ND) SetLinkLayer(option uint8, mac [6]byte) (ok bool) {
	at := n.linkLayer(option)
	if at != 0 {
		copy(n[at:], mac[:])
	}
	return at != 0
}

func (n ND) linkLayer(option uint8) int {
	for at := n.options(); at < len(n); at += int(n[at+1]) * ndOptionUnit {
		if n[at] == option && n[at+1] == linkLayerUnits {
			return at + 2
		}
	}
	return 0
}

// SetChecksum computes the checksum; p is the packet with n.
func (n ND) SetChecksum(p IPv6) {
	n[2], n[3] = 0, 0
	sum := Checksum(n.sum(p))
	n[2], n[3] = byte(sum>>8), byte(sum)
}

// PutNeighbour writes a solicitation or advertisement with its link-layer option to b, 32 bytes. The caller sets the
// checksum with [ND.SetChecksum].
func PutNeighbour(b []byte, typ, flags uint8, target [16]byte, mac [6]byte) ND {
	option := byte(SourceLinkLayer)
	if typ == NeighbourAdvert {
		option = TargetLinkLayer
	}
	n := (*[NeighbourLen + LinkLayerLen]byte)(b)
	n[0], n[1], n[2], n[3] = typ, 0, 0, 0
	n[4], n[5], n[6], n[7] = flags, 0, 0, 0
	*(*[16]byte)(n[8:]) = target
	n[24], n[25] = option, linkLayerUnits
	*(*[6]byte)(n[26:]) = mac
	return n[:]
}

// SolicitedNode returns the multicast address that solicitations for a target are sent to
// (RFC 4291, section 2.7.1).
func SolicitedNode(target [16]byte) [16]byte {
	return [16]byte{0xff, 2, 11: 1, 12: 0xff, 13: target[13], 14: target[14], 15: target[15]}
}
