package datagrams

import "github.com/vxswitch/vxswitch/frame"

// The two protocols of a tunnel without UDP, which may be indices.
const (
	Carries4  = iota // IPv4 inside, protocol 4 (RFC 2003)
	Carries6         // IPv6 inside, protocol 41 (RFC 2473, RFC 4213)
	Protocols        // how many there are
)

// Protocol returns the protocol for a packet, by the version in its first byte; -1 for what is no
// IP packet.
func Protocol(parts [][]byte) int {
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		switch p[0] >> 4 {
		case 4:
			return Carries4
		case 6:
			return Carries6
		}
		break
	}
	return -1
}

// Kind returns the kind of frame that a protocol carries.
func Kind(protocol int) frame.Kind {
	if protocol == Carries6 {
		return frame.IPv6
	}
	return frame.IPv4
}

// IPHeader is what an IP header without options takes, in bytes.
func IPHeader(is4 bool) int {
	if is4 {
		return 20
	}
	return 40
}

// UDPHeaders is what IP and UDP headers take of the IP MTU.
func UDPHeaders(is4 bool) int { return IPHeader(is4) + 8 }
