package wire

import (
	"encoding/binary"
	"net/netip"
)

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

// UDPPacketLen returns the length of an IP packet with a UDP payload of n bytes.
func UDPPacketLen(is4 bool, n int) int {
	if is4 {
		return IPv4Len + UDPLen + n
	}
	return IPv6Len + UDPLen + n
}

// PutUDP writes an IP packet with a UDP datagram, its checksums included, to b: [UDPPacketLen] bytes. The addresses are of
// one family. IPv4 packets have the DF bit.
func PutUDP(b []byte, src, dst netip.AddrPort, tos, ttl uint8, payload []byte) {
	n := UDPLen + len(payload)
	var u UDP
	var pseudo uint64
	if src.Addr().Is4() {
		h := IPv4Header{TOS: tos, TTL: ttl, Protocol: ProtoUDP, DF: true, TotalLen: uint16(IPv4Len + n), Src: src.Addr().As4(), Dst: dst.Addr().As4()}
		h.Put(b)
		u, pseudo = UDP(b[IPv4Len:]), Pseudo4(b, ProtoUDP, n)
	} else {
		h := IPv6Header{TrafficClass: tos, NextHeader: ProtoUDP, HopLimit: ttl, PayloadLen: uint16(n), Src: src.Addr().As16(), Dst: dst.Addr().As16()}
		h.Put(b)
		u, pseudo = UDP(b[IPv6Len:]), Pseudo6(b, ProtoUDP, n)
	}
	u = u[:n]
	binary.BigEndian.PutUint16(u, src.Port())
	binary.BigEndian.PutUint16(u[2:], dst.Port())
	u.SetLen(n)
	copy(u[UDPLen:], payload)
	u.SetChecksum(0)
	sum := Checksum(Sum(u, pseudo))
	if sum == 0 {
		sum = 0xffff // 0 stands for none (RFC 768)
	}
	u.SetChecksum(sum)
}

// UDPOf returns the UDP datagram, without padding, that m, the payload of an IP packet, has, if its length and its checksum
// are right. pseudo is the sum of the pseudo header for a length of 0. A checksum of 0 stands for none, where allowed.
func UDPOf(m []byte, pseudo uint64, none bool) (u UDP, lengthOK, checksumOK bool) {
	if len(m) < UDPLen || UDP(m).Len() < UDPLen || UDP(m).Len() > len(m) {
		return nil, false, false
	}
	u = UDP(m[:UDP(m).Len()])
	return u, true, none && u.Checksum() == 0 || Fold(Sum(u, pseudo+uint64(len(u)))) == 0xffff
}

// SrcPort returns the source port.
func (h UDP) SrcPort() uint16 { return binary.BigEndian.Uint16(h) }

// DstPort returns the destination port.
func (h UDP) DstPort() uint16 { return binary.BigEndian.Uint16(h[2:]) }
