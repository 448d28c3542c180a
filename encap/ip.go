package encap

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
)

// Protocol numbers of the outer IP header.
const (
	ProtoIPv4 = 4  // RFC 2003; over IPv6, RFC 2473
	ProtoIPv6 = 41 // RFC 4213; over IPv6, RFC 2473
)

// ParseIP checks the inner packet of an IP tunnel. Kind is from the outer header or next protocol. It returns the length
// in the packet's header; the rest of b is padding. It returns frame.Short for a truncated packet, frame.BadHeader for
// another version or inconsistent lengths, and frame.TTL for a TTL of 0 (RFC 2003, section 3.1).
func ParseIP(b []byte, kind frame.Kind) (n int, r frame.Reason) {
	if len(b) == 0 {
		return 0, frame.Short
	}
	var ttl byte
	switch {
	case kind == frame.IPv4 && b[0]>>4 == 4:
		if len(b) < ipv4Len {
			return 0, frame.Short
		}
		n, ttl = int(binary.BigEndian.Uint16(b[2:])), b[8]
		if head := int(b[0]&0xf) * 4; head < ipv4Len || n < head {
			return 0, frame.BadHeader
		}
	case kind == frame.IPv6 && b[0]>>4 == 6:
		if len(b) < ipv6Len {
			return 0, frame.Short
		}
		n, ttl = ipv6Len+int(binary.BigEndian.Uint16(b[4:])), b[7]
	default:
		return 0, frame.BadHeader
	}
	switch {
	case n > len(b):
		return 0, frame.Short
	case ttl == 0:
		return 0, frame.TTL
	}
	return n, frame.NotDropped
}
