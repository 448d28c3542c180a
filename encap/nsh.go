package encap

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
)

// NSH is a network service header (RFC 8300, section 2), as it is on the wire: what [ParseNSH] returns has its whole length.
//
//	|Ver|O|U|    TTL    |  length   |U|U|U|U|MD type| next protocol |   length is in words of 4 bytes
//	|          service path identifier              | service index |
//	|                 context headers, 0 to 244 bytes               |
type NSH []byte

// Lengths and values of NSH.
const (
	NSHLen    = 8   // base and service path headers
	NSHNextAt = 3   // where the next protocol is
	NSHMaxLen = 252 // with the longest context headers
	NSHTTL    = 63  // TTL at the start of a path (section 2.2)
	MaxPath   = 1<<24 - 1

	MDFixed    = 1 // 16 bytes of context (section 2.4)
	MDVariable = 2 // none, or a list of TLVs (section 2.5)
)

const (
	nshFlagOAM  = 0x20
	nshVersion  = 0xc0
	mdFixedLen  = NSHLen + 16
	nshNextKind = 3 // IPv4, IPv6 and Ethernet have the numbers 1 to 3, as in VXLAN-GPE
)

// ParseNSH returns the header at the start of b, borrowed. It checks, in this order: frame.Short if b is shorter than the header,
// frame.BadHeader for a version other than 0, a length that the MD type does not have, or an MD type other than 1 and 2 (section
// 2.2). TTL and service index are for the caller to check.
func ParseNSH(b []byte) (NSH, frame.Reason) {
	if len(b) < NSHLen {
		return nil, frame.Short
	}
	n := 4 * int(b[1]&0x3f)
	switch md := b[2] & 0xf; {
	case b[0]&nshVersion != 0, n < NSHLen, md != MDFixed && md != MDVariable, md == MDFixed && n != mdFixedLen:
		return nil, frame.BadHeader
	case len(b) < n:
		return nil, frame.Short
	}
	return NSH(b[:n:n]), frame.NotDropped
}

// AppendNSH appends a header to b for a packet of a kind, with the TTL of a path's start. The metadata is the 16 bytes of
// [MDFixed], or the TLVs of MDVariable, whole words of up to 244 bytes. With other metadata, or a path above [MaxPath], it returns
// nil.
func AppendNSH(b []byte, path uint32, index uint8, kind frame.Kind, mdType uint8, metadata []byte) []byte {
	n := NSHLen + len(metadata)
	switch {
	case n > NSHMaxLen, n%4 != 0, path > MaxPath, mdType == MDFixed && n != mdFixedLen, mdType != MDFixed && mdType != MDVariable:
		return nil
	}
	b = append(b, NSHTTL>>2, NSHTTL<<6&0xff|byte(n/4), mdType, byte(nextOf[kind]))
	b = binary.BigEndian.AppendUint32(b, path<<8|uint32(index))
	return append(b, metadata...)
}

// Path returns the service path identifier, 24 bits.
func (h NSH) Path() uint32 { return binary.BigEndian.Uint32(h[4:]) >> 8 }

// Index returns the service index: how many services are left on the path, the next one included.
func (h NSH) Index() uint8 { return h[7] }

// TTL returns how many forwarders the packet may still pass, 0 to 63; 0 counts as 64.
func (h NSH) TTL() uint8 { return h[0]<<2&0x3c | h[1]>>6 }

// OAM reports whether the packet is for operation of the path itself (section 2.2).
func (h NSH) OAM() bool { return h[0]&nshFlagOAM != 0 }

// MDType returns the format of Metadata, [MDFixed] or [MDVariable].
func (h NSH) MDType() uint8 { return h[2] & 0xf }

// Metadata returns the context headers, borrowed.
func (h NSH) Metadata() []byte { return h[NSHLen:] }

// Next returns the number of the next protocol (section 2.2).
func (h NSH) Next() uint8 { return h[3] }

// Kind returns the kind of the packet behind the header, and false if it is neither Ethernet nor IP.
func (h NSH) Kind() (frame.Kind, bool) {
	if h[3] > nshNextKind {
		return 0, false
	}
	return GPE(uint64(h[3]) << 32).Kind()
}

// Hop takes one from the TTL, as each forwarder does, and returns frame.TTL if it is 0 then: the packet goes no further. 0 becomes
// 63 (section 2.2).
func (h NSH) Hop() frame.Reason {
	ttl := (h.TTL() - 1) & 0x3f
	h[0], h[1] = h[0]&^0xf|ttl>>2, h[1]&0x3f|ttl<<6
	if ttl == 0 {
		return frame.TTL
	}
	return frame.NotDropped
}

// Serve takes one from the service index, as each service does, and returns frame.ServiceIndex if it is 0 then, or was already: no
// service is left, and the packet goes no further (section 2.3).
func (h NSH) Serve() frame.Reason {
	if h[7] > 0 {
		h[7]--
	}
	if h[7] == 0 {
		return frame.ServiceIndex
	}
	return frame.NotDropped
}
