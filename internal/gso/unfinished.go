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
func unfinished(f *frame.Frame) (at int, ok bool) {
	at = int(f.GSO.CsumStart) - f.Headroom()
	sum := at + int(f.GSO.CsumOffset)
	if at < 0 || sum+2 > f.Len() {
		return at, false
	}
	own, end := sumAt(f.Bytes(), f.Kind)
	return at, sum == own || sum >= end
}

// sumAt returns where the checksum of a TCP, UDP or ICMP packet is, -1 for others, and where
// that ends which stages of the switch read: the headers, and of ARP and ICMP the whole.
func sumAt(p []byte, kind frame.Kind) (own, end int) {
	at, protocol, ok := upper(p, kind)
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

// upper returns what is behind the network header, and its protocol; ok is false for
// packets that have none, or cannot be read.
func upper(p []byte, kind frame.Kind) (at int, protocol uint8, ok bool) {
	at, is4, ok := network(p, kind)
	if !ok {
		return 0, 0, false
	}
	if is4 {
		ip, ok := wire.ParseIPv4(p[at:])
		if !ok || ip.FragmentOffset() != 0 {
			return 0, 0, false
		}
		return at + ip.HeaderLen(), ip.Protocol(), true
	}
	ip, ok := wire.ParseIPv6(p[at:])
	if !ok {
		return 0, 0, false
	}
	u, ok := ip.Upper()
	return at + u.At, u.Protocol, ok && !u.Later
}
