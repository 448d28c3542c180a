package wire

import (
	"encoding/binary"
	"math/bits"
)

// IPv4Len is the length of an IPv4 header without options.
const IPv4Len = 20

// Numbers of the IPv4 protocol and IPv6 next header fields.
const (
	ProtoHopByHop = 0
	ProtoICMP     = 1
	ProtoIPv4     = 4 // RFC 2003
	ProtoTCP      = 6
	ProtoUDP      = 17
	ProtoIPv6     = 41 // RFC 4213; over IPv6, RFC 2473
	ProtoRouting  = 43
	ProtoFragment = 44
	ProtoAuth     = 51 // RFC 4302; ESP hides the next header, and so is a payload here
	ProtoICMPv6   = 58
	ProtoDstOpts  = 60
	protoMobility = 135
	protoHIP      = 139
	protoShim6    = 140
)

// IPv4 is a view over an IPv4 packet (RFC 791, section 3.1), header and payload: out of
// [ParseIPv4] as long as its total length says, else of at least [IPv4Len] bytes.
type IPv4 []byte

// ParseIPv4 returns the packet at the start of b without padding. ok is false if the version or a length is wrong. It does
// not verify the checksum.
func ParseIPv4(b []byte) (p IPv4, ok bool) {
	if len(b) < IPv4Len || b[0]>>4 != 4 {
		return nil, false
	}
	p = b
	total := int(binary.BigEndian.Uint16(b[2:]))
	if h := p.HeaderLen(); h < IPv4Len || h > total || total > len(b) {
		return nil, false
	}
	return p[:total:total], true
}

// HeaderLen returns the length of the header with its options.
func (p IPv4) HeaderLen() int { return int(p[0]&0xf) * 4 }

// TotalLen returns the length of the whole packet, as the header says.
func (p IPv4) TotalLen() int { return int(binary.BigEndian.Uint16(p[2:])) }

// SetTotalLen sets the length of the whole packet.
func (p IPv4) SetTotalLen(n int) { binary.BigEndian.PutUint16(p[2:], uint16(n)) }

// ID returns the identification.
func (p IPv4) ID() uint16 { return binary.BigEndian.Uint16(p[4:]) }

// SetID sets the identification.
func (p IPv4) SetID(id uint16) { binary.BigEndian.PutUint16(p[4:], id) }

// DF reports whether routers may not fragment the packet.
func (p IPv4) DF() bool { return p[6]&0x40 != 0 }

// Fragment reports whether the packet is one of several fragments.
func (p IPv4) Fragment() bool { return binary.BigEndian.Uint16(p[6:])&0x3fff != 0 }

// FragmentOffset returns the offset in the original payload in bytes.
func (p IPv4) FragmentOffset() int { return int(binary.BigEndian.Uint16(p[6:])&0x1fff) * 8 }

// Protocol returns the number of the protocol of the payload.
func (p IPv4) Protocol() uint8 { return p[9] }

// Checksum returns the header checksum.
func (p IPv4) Checksum() uint16 { return binary.BigEndian.Uint16(p[10:]) }

// SetChecksum sets the header checksum.
func (p IPv4) SetChecksum(c uint16) { binary.BigEndian.PutUint16(p[10:], c) }

// ChecksumOK reports whether the header checksum is right.
func (p IPv4) ChecksumOK() bool {
	if p.HeaderLen() != IPv4Len { // with options: rare
		return Fold(Sum(p[:p.HeaderLen()], 0)) == 0xffff
	}
	sum, carry := bits.Add64(binary.BigEndian.Uint64(p), binary.BigEndian.Uint64(p[8:]), 0)
	sum, carry = bits.Add64(sum, uint64(binary.BigEndian.Uint32(p[16:])), carry)
	return Fold(sum+carry) == 0xffff
}

// Src returns the source address.
func (p IPv4) Src() [4]byte { return [4]byte(p[12:]) }

// Dst returns the destination address.
func (p IPv4) Dst() [4]byte { return [4]byte(p[16:]) }

// Payload returns the payload.
func (p IPv4) Payload() []byte { return p[p.HeaderLen():] }

// Mapped returns an IPv4 address as an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2), as in endpoints.
func Mapped(a [4]byte) [16]byte {
	return [16]byte{10: 0xff, 11: 0xff, 12: a[0], 13: a[1], 14: a[2], 15: a[3]}
}

// IPv4Header has the fields of a new header without options, of a packet that is not a fragment.
type IPv4Header struct {
	TOS, TTL, Protocol uint8
	ID                 uint16
	DF                 bool
	TotalLen           uint16
	Src, Dst           [4]byte
}

// Put writes the 20 bytes of the header to b, its checksum included.
func (h *IPv4Header) Put(b []byte) {
	b = b[:IPv4Len]
	b[0], b[1] = 4<<4|IPv4Len/4, h.TOS
	binary.BigEndian.PutUint16(b[2:], h.TotalLen)
	binary.BigEndian.PutUint16(b[4:], h.ID)
	b[6], b[7] = 0, 0
	if h.DF {
		b[6] = 0x40
	}
	b[8], b[9] = h.TTL, h.Protocol
	b[10], b[11] = 0, 0
	copy(b[12:], h.Src[:])
	copy(b[16:], h.Dst[:])
	binary.BigEndian.PutUint16(b[10:], Checksum(Sum(b, 0)))
}
