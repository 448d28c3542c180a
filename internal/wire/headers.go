package wire

import "encoding/binary"

// EtherTypes.
const (
	TypeIPv4 = 0x0800
	TypeIPv6 = 0x86dd
	TypeVLAN = 0x8100 // IEEE 802.1Q
	TypeQinQ = 0x88a8 // IEEE 802.1ad
)

// Protocol numbers of the IPv4 protocol and IPv6 next header fields.
const (
	ProtoHopByHop = 0
	ProtoTCP      = 6
	ProtoUDP      = 17
	ProtoDstOpts  = 60
)

// Lengths of headers without options.
const (
	EthernetLen = 14
	VLANLen     = 4
	IPv4Len     = 20
	IPv6Len     = 40
	TCPLen      = 20
	UDPLen      = 8
)

// Network returns the EtherType of an Ethernet frame behind up to two VLAN tags, and
// where what it names begins. A frame cut short before that, or with more tags, has
// EtherType 0.
func Network(b []byte) (etherType uint16, at int) {
	for at = EthernetLen; at <= EthernetLen+2*VLANLen && at <= len(b); at += VLANLen {
		t := binary.BigEndian.Uint16(b[at-2:])
		if t != TypeVLAN && t != TypeQinQ {
			return t, at
		}
	}
	return 0, 0
}

// IPv4 is a view of at least [IPv4Len] bytes, an IPv4 header and what follows
// (RFC 791, section 3.1).
type IPv4 []byte

// Version returns the version field, which is 4.
func (h IPv4) Version() int { return int(h[0] >> 4) }

// HeaderLen returns the length of the header with its options, in bytes.
func (h IPv4) HeaderLen() int { return int(h[0]&0xf) * 4 }

// TotalLen returns the length of the packet.
func (h IPv4) TotalLen() int { return int(binary.BigEndian.Uint16(h[2:])) }

// SetTotalLen sets the length of the packet.
func (h IPv4) SetTotalLen(n int) { binary.BigEndian.PutUint16(h[2:], uint16(n)) }

// ID returns the identification.
func (h IPv4) ID() uint16 { return binary.BigEndian.Uint16(h[4:]) }

// SetID sets the identification.
func (h IPv4) SetID(id uint16) { binary.BigEndian.PutUint16(h[4:], id) }

// DF reports whether the packet may not be fragmented.
func (h IPv4) DF() bool { return h[6]&0x40 != 0 }

// Fragment reports whether the packet is a part of another, the first included.
func (h IPv4) Fragment() bool { return binary.BigEndian.Uint16(h[6:])&0x3fff != 0 }

// Protocol returns what the packet carries.
func (h IPv4) Protocol() uint8 { return h[9] }

// Checksum returns the header checksum.
func (h IPv4) Checksum() uint16 { return binary.BigEndian.Uint16(h[10:]) }

// SetChecksum sets the header checksum.
func (h IPv4) SetChecksum(c uint16) { binary.BigEndian.PutUint16(h[10:], c) }

// IPv6 is a view of at least [IPv6Len] bytes, an IPv6 header and what follows
// (RFC 8200, section 3).
type IPv6 []byte

// Version returns the version field, which is 6.
func (h IPv6) Version() int { return int(h[0] >> 4) }

// PayloadLen returns the length of what follows the header.
func (h IPv6) PayloadLen() int { return int(binary.BigEndian.Uint16(h[4:])) }

// SetPayloadLen sets the length of what follows the header.
func (h IPv6) SetPayloadLen(n int) { binary.BigEndian.PutUint16(h[4:], uint16(n)) }

// NextHeader returns what follows the header.
func (h IPv6) NextHeader() uint8 { return h[6] }

// TCP is a view of at least [TCPLen] bytes, a TCP header and what follows (RFC 9293,
// section 3.1).
type TCP []byte

// TCP flags of [TCP.Flags].
const (
	FIN = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// Seq returns the sequence number.
func (h TCP) Seq() uint32 { return binary.BigEndian.Uint32(h[4:]) }

// SetSeq sets the sequence number.
func (h TCP) SetSeq(n uint32) { binary.BigEndian.PutUint32(h[4:], n) }

// HeaderLen returns the length of the header with its options, in bytes.
func (h TCP) HeaderLen() int { return int(h[12]>>4) * 4 }

// Flags returns the eight flags from CWR to FIN.
func (h TCP) Flags() uint8 { return h[13] }

// SetFlags sets the eight flags from CWR to FIN.
func (h TCP) SetFlags(f uint8) { h[13] = f }

// Checksum returns the checksum.
func (h TCP) Checksum() uint16 { return binary.BigEndian.Uint16(h[TCPChecksum:]) }

// SetChecksum sets the checksum.
func (h TCP) SetChecksum(c uint16) { binary.BigEndian.PutUint16(h[TCPChecksum:], c) }

// UDP is a view of at least [UDPLen] bytes, a UDP header and what follows (RFC 768).
type UDP []byte

// Len returns the length of header and payload.
func (h UDP) Len() int { return int(binary.BigEndian.Uint16(h[4:])) }

// SetLen sets the length of header and payload.
func (h UDP) SetLen(n int) { binary.BigEndian.PutUint16(h[4:], uint16(n)) }

// Checksum returns the checksum, 0 where there is none.
func (h UDP) Checksum() uint16 { return binary.BigEndian.Uint16(h[UDPChecksum:]) }

// SetChecksum sets the checksum.
func (h UDP) SetChecksum(c uint16) { binary.BigEndian.PutUint16(h[UDPChecksum:], c) }

// Where the checksum is in a transport header.
const (
	TCPChecksum = 16
	UDPChecksum = 6
)
