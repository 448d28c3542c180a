package wire

import "encoding/binary"

// Lengths of transport headers without options.
const (
	TCPLen = 20
	UDPLen = 8
)

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
