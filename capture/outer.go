package capture

import (
	"encoding/binary"
	"math/bits"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// maxPayload is how many bytes an IPv4 packet has room for behind UDP.
const maxPayload = 65535 - wire.IPv4Len - wire.UDPLen

// addresses is what an outer header is made from.
type addresses struct {
	src, dst frame.Endpoint
	tos, ttl uint8
	df       bool
	raw      bool // IP in IP, without UDP
}

// An outerHeader is scratch memory for an IP header (RFC 791, RFC 8200) and a UDP
// header (RFC 768).
type outerHeader [wire.IPv6Len + wire.UDPLen]byte

// fill makes the headers for a payload of n bytes, which consists of pieces. The
// family is that of the destination.
func (h *outerHeader) fill(a *addresses, pieces [][]byte, n int) []byte {
	proto, behind := byte(wire.ProtoUDP), wire.UDPLen
	if a.raw {
		proto, behind = inside(pieces), 0
	}
	b := h[:wire.IPv6Len+behind]
	if a.dst.Is4() {
		b = h[:wire.IPv4Len+behind]
		ip := wire.IPv4Header{
			TOS: a.tos, TTL: a.ttl, DF: a.df, Protocol: proto, TotalLen: uint16(len(b) + n),
			Src: [4]byte(a.src.IP[12:]), Dst: [4]byte(a.dst.IP[12:]),
		}
		ip.Put(b)
	} else {
		ip := wire.IPv6Header{
			TrafficClass: a.tos, HopLimit: a.ttl, NextHeader: proto, PayloadLen: uint16(behind + n),
			Src: a.src.IP, Dst: a.dst.IP,
		}
		ip.Put(b)
	}
	if a.raw {
		return b
	}
	udp := wire.UDP(b[len(b)-wire.UDPLen:])
	binary.BigEndian.PutUint16(udp, a.src.Port)
	binary.BigEndian.PutUint16(udp[2:], a.dst.Port)
	udp.SetLen(wire.UDPLen + n)
	udp.SetChecksum(0)
	if !a.dst.Is4() {
		sum := sumPieces(pieces, wire.Sum(udp, wire.Pseudo6(b, proto, wire.UDPLen+n)))
		c := wire.Checksum(sum)
		if c == 0 { // means "none" (RFC 768)
			c = 0xffff
		}
		udp.SetChecksum(c)
	}
	return b
}

// inside returns the protocol number of the packet in an IP packet, by its version.
func inside(pieces [][]byte) byte {
	for _, p := range pieces {
		if len(p) > 0 {
			if p[0]>>4 == 6 {
				return 41 // RFC 4213, RFC 2473
			}
			break
		}
	}
	return 4 // RFC 2003, RFC 2473
}

// sumPieces adds pieces of any length to a checksum's sum: what begins at an odd place
// has its bytes exchanged (RFC 1071, section 2, part B).
func sumPieces(pieces [][]byte, sum uint64) uint64 {
	odd := false
	for _, p := range pieces {
		s := wire.Fold(wire.Sum(p, 0))
		if odd {
			s = bits.ReverseBytes16(s)
		}
		sum += uint64(s)
		odd = odd != (len(p)%2 == 1)
	}
	return sum
}
