package gso

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// headersMax limits the headers that are repeated for each segment. Ethernet, two tags, IPv4 and TCP with all options take
// 142 bytes; IPv6 has some room for extension headers. Without the limit a sender could have 30 kB repeated.
const headersMax = 256

// headers has the offsets of the headers of a TCP or UDP packet.
type headers struct {
	l3, l4, data int
	proto        uint8
	is4          bool
}

// network returns the offset of an IP packet and whether it is IPv4; ok is false for other packets.
func network(p []byte, kind frame.Kind) (at int, is4, ok bool) {
	switch kind {
	case frame.IPv4:
		return 0, true, true
	case frame.IPv6:
		return 0, false, true
	case frame.Ethernet:
		e, ok := wire.ParseEthernet(p)
		if !ok {
			return 0, false, false
		}
		t, at := e.Network()
		return at, t == wire.TypeIPv4, t == wire.TypeIPv4 || t == wire.TypeIPv6
	}
	return 0, false, false
}

// locate finds the headers of a TCP or UDP packet. It refuses packets that cannot be cut or joined: fragments, and packets
// with inconsistent lengths or trailing padding.
func locate(p []byte, kind frame.Kind) (h headers, ok bool) {
	if h.l3, h.is4, ok = network(p, kind); !ok {
		return h, false
	}
	ip := p[h.l3:]
	var n int
	if h.is4 {
		h.proto, n = ipv4(ip)
	} else {
		h.proto, n = ipv6(ip)
	}
	if n == 0 {
		return h, false
	}
	h.l4 = h.l3 + n
	switch l4 := ip[n:]; h.proto {
	case wire.ProtoTCP:
		if len(l4) < wire.TCPLen {
			return h, false
		}
		n = wire.TCP(l4).HeaderLen()
		if n < wire.TCPLen || n > len(l4) {
			return h, false
		}
	case wire.ProtoUDP:
		if n = wire.UDPLen; len(l4) < n || wire.UDP(l4).Len() != len(l4) {
			return h, false
		}
	default:
		return h, false
	}
	h.data = h.l4 + n
	return h, h.data <= headersMax
}

// ipv4 returns the protocol of an IPv4 packet and the offset of its payload, 0 if it cannot be used.
func ipv4(ip wire.IPv4) (proto uint8, at int) {
	if len(ip) < wire.IPv4Len || ip[0]>>4 != 4 || ip.TotalLen() != len(ip) || ip.Fragment() {
		return 0, 0
	}
	if at = ip.HeaderLen(); at < wire.IPv4Len || at > len(ip) {
		return 0, 0
	}
	return ip.Protocol(), at
}

// ipv6 is ipv4 for IPv6. It skips options (RFC 8200, sections 4.3 and 4.6) only: with a routing header, the pseudo header
// has another destination.
func ipv6(ip wire.IPv6) (proto uint8, at int) {
	if len(ip) < wire.IPv6Len || ip[0]>>4 != 6 || wire.IPv6Len+ip.PayloadLen() != len(ip) {
		return 0, 0
	}
	proto, at = ip.NextHeader(), wire.IPv6Len
	for proto == wire.ProtoHopByHop || proto == wire.ProtoDstOpts {
		if len(ip) < at+8 {
			return 0, 0
		}
		proto, at = ip[at], at+8+8*int(ip[at+1])
	}
	if at > len(ip) {
		return 0, 0
	}
	return proto, at
}

// pseudo returns the sum of the pseudo header for a transport header and payload of n bytes.
func (h *headers) pseudo(p []byte, n int) uint64 {
	if h.is4 {
		return wire.Pseudo4(p[h.l3:], h.proto, n)
	}
	return wire.Pseudo6(p[h.l3:], h.proto, n)
}

// csumOffset returns the offset of the checksum in the transport header.
func (h *headers) csumOffset() int {
	if h.proto == wire.ProtoTCP {
		return wire.TCPChecksum
	}
	return wire.UDPChecksum
}

// gsoType returns the type of a superframe of such packets.
func (h *headers) gsoType() frame.GSOType {
	switch {
	case h.proto == wire.ProtoUDP:
		return frame.GSOUDP
	case h.is4:
		return frame.GSOTCP4
	}
	return frame.GSOTCP6
}

// setLen writes the length of the network packet, and of the UDP packet, into the
// headers q.
func (h *headers) setLen(q []byte, payload int) {
	if h.is4 {
		wire.IPv4(q[h.l3:]).SetTotalLen(h.data - h.l3 + payload)
	} else {
		wire.IPv6(q[h.l3:]).SetPayloadLen(h.data - h.l3 - wire.IPv6Len + payload)
	}
	if h.proto == wire.ProtoUDP {
		wire.UDP(q[h.l4:]).SetLen(wire.UDPLen + payload)
	}
}

// setChecksum writes the transport checksum into the headers q.
func (h *headers) setChecksum(q []byte, c uint16) {
	binary.BigEndian.PutUint16(q[h.l4+h.csumOffset():], c)
}
