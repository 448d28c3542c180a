package gso

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// unfinished returns the offset in the packet where the sum for an unfinished checksum begins.
//
// A checksum is written where the sender says, after policies were applied. If that were an address or a port, the
// packet would leave with other headers than were checked. So it must be the checksum field of the protocol, or be
// after the headers, as in an inner packet. It must not cover the Ethernet header and tags, which switches change.
func unfinished(f *frame.Frame) (at int, ok bool) {
	at = int(f.GSO.CsumStart) - f.Headroom()
	sum := at + int(f.GSO.CsumOffset)
	l3, is4, isIP := network(f.Bytes(), f.Kind)
	if at < l3 || sum+2 > f.Len() {
		return at, false
	}
	own, end := -1, f.Len()
	if isIP {
		own, end = sumAt(f.Bytes(), l3, is4)
	}
	return at, sum == own || sum >= end
}

// sumAt returns the offset of the checksum in a TCP, UDP or ICMP packet, -1 for others, and the end of what the stages of
// the switch read: the headers, or all of ARP and ICMP.
func sumAt(p []byte, l3 int, is4 bool) (own, end int) {
	at, protocol, ok := upper(p, l3, is4)
	switch {
	case !ok:
		return -1, len(p)
	case protocol == wire.ProtoTCP:
		return at + wire.TCPChecksum, at + wire.TCPLen
	case protocol == wire.ProtoUDP:
		return at + wire.UDPChecksum, at + wire.UDPLen
	case protocol == wire.ProtoICMP, protocol == wire.ProtoICMPv6:
		return at + icmpChecksum, len(p)
	}
	return -1, at + portsLen
}

const (
	icmpChecksum = 2
	portsLen     = 4 // other protocols that have ports begin with them
)

// upper returns the offset and protocol of the payload of the IP packet at l3; ok is false for fragments but the first, and
// for malformed packets.
func upper(p []byte, l3 int, is4 bool) (at int, protocol uint8, ok bool) {
	if is4 {
		ip, ok := wire.ParseIPv4(p[l3:])
		if !ok || ip.FragmentOffset() != 0 {
			return 0, 0, false
		}
		return l3 + ip.HeaderLen(), ip.Protocol(), true
	}
	ip, ok := wire.ParseIPv6(p[l3:])
	if !ok {
		return 0, 0, false
	}
	u, ok := ip.Upper()
	return l3 + u.At, u.Protocol, ok && !u.Later
}
