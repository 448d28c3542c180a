package port

import (
	"encoding/binary"
	"math/bits"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

const (
	udpLen     = 8
	ip4Len     = 20
	ip6Len     = 40
	protoUDP   = 17
	maxPayload = 65535 - ip4Len - udpLen // bytes an IPv4 packet has room for behind UDP
)

// addresses is what an outer header is made from.
type addresses struct {
	src, dst frame.Endpoint
	tos, ttl uint8
	df       bool
	raw      bool // IP in IP, without UDP
}

// An outerHeader is scratch memory for an IP header (RFC 791, RFC 8200) and a UDP
// header (RFC 768).
type outerHeader [ip6Len + udpLen]byte

// fill makes the headers for a payload of n bytes, which consists of pieces. The
// family is that of the destination.
func (h *outerHeader) fill(a *addresses, pieces [][]byte, n int) []byte {
	proto, behind := byte(protoUDP), udpLen
	if a.raw {
		proto, behind = inside(pieces), 0
	}
	if a.dst.Is4() {
		b := h[:ip4Len+behind]
		if !a.raw {
			putUDP(b[ip4Len:], a, n)
		}
		b[0], b[1] = 0x45, a.tos
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)+n))
		binary.BigEndian.PutUint32(b[4:], 0)
		if a.df {
			b[6] = 0x40
		}
		b[8], b[9] = a.ttl, proto
		b[10], b[11] = 0, 0
		copy(b[12:16], a.src.IP[12:])
		copy(b[16:20], a.dst.IP[12:])
		binary.BigEndian.PutUint16(b[10:], wire.Checksum(wire.Sum(b[:ip4Len], 0)))
		return b
	}
	b := h[:ip6Len+behind]
	binary.BigEndian.PutUint32(b, 6<<28|uint32(a.tos)<<20)
	binary.BigEndian.PutUint16(b[4:], uint16(behind+n))
	b[6], b[7] = proto, a.ttl
	copy(b[8:24], a.src.IP[:])
	copy(b[24:40], a.dst.IP[:])
	if a.raw {
		return b
	}
	udp := b[ip6Len:]
	putUDP(udp, a, n)
	sum := sumPieces(pieces, wire.Sum(udp, wire.Pseudo6(b, protoUDP, udpLen+n)))
	c := wire.Checksum(sum)
	if c == 0 { // means "none" (RFC 768)
		c = 0xffff
	}
	binary.BigEndian.PutUint16(udp[6:], c)
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

// putUDP makes a UDP header without checksum.
func putUDP(b []byte, a *addresses, n int) {
	binary.BigEndian.PutUint16(b, a.src.Port)
	binary.BigEndian.PutUint16(b[2:], a.dst.Port)
	binary.BigEndian.PutUint16(b[4:], uint16(udpLen+n))
	b[6], b[7] = 0, 0
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
