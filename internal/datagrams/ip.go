package datagrams

import "github.com/vxswitch/vxswitch/frame"

// The two protocols of a tunnel without UDP, usable as indices.
const (
	Carries4  = iota // IPv4 inside, protocol 4 (RFC 2003)
	Carries6         // IPv6 inside, protocol 41 (RFC 2473, RFC 4213)
	Protocols        // number of protocols
)

// Protocol returns the protocol for a packet by the version in its first byte, -1 if it is not an IP packet.
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

// IPHeader returns the length of an IP header without options.
func IPHeader(is4 bool) int {
	if is4 {
		return 20
	}
	return 40
}

// UDPHeaders returns the length of the IP and UDP headers.
func UDPHeaders(is4 bool) int { return IPHeader(is4) + 8 }
