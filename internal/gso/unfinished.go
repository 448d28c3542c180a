package gso

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// unfinished returns where in the packet the sum for an unfinished checksum begins.
//
// Who finishes a checksum writes where the sender said, after the frame has been judged: were
// that an address or a port, the frame would pass as one thing and leave as another. So it is
// the protocol's own checksum, or lies behind the headers, as that of a packet inside does.
// And it sums nothing of the Ethernet header and its tags, which switches change.
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

// sumAt returns where the checksum of a TCP, UDP or ICMP packet is, -1 for others, and where
// that ends which stages of the switch read: the headers, and of ARP and ICMP the whole.
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

// upper returns what is behind the IP header at l3, and its protocol; ok is false for
// fragments but the first, and what cannot be read.
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
