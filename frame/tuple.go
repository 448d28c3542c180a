package frame

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/internal/wire"
)

// A Tuple is what filters judge most packets by: the protocol, TCP, UDP or the echo of ICMP and ICMPv6, the addresses and the ports.
// The zero Tuple is none.
type Tuple struct {
	Protocol uint8      `json:"protocol"`
	Src      netip.Addr `json:"src"`
	Dst      netip.Addr `json:"dst"`
	SrcPort  uint16     `json:"srcPort"` // of an echo 0
	DstPort  uint16     `json:"dstPort"` // of an echo its type<<8 | code
}

// TupleOf returns the Tuple of an Ethernet frame. There is none if anybody may read other packets behind the same headers: of
// fragments, with IP options or extension headers, and if a header is cut off or longer than the packet.
func TupleOf(b []byte) (t Tuple, ok bool) {
	if len(b) < 14 {
		return t, false
	}
	var l4 []byte
	icmp, request, answer := uint8(wire.ProtoICMP), uint8(wire.ICMPEcho), uint8(wire.ICMPEchoReply)
	switch binary.BigEndian.Uint16(b[12:]) {
	case wire.TypeIPv4:
		p, ok := wire.ParseIPv4(b[14:])
		if !ok || p.HeaderLen() != wire.IPv4Len || p.Fragment() {
			return t, false
		}
		t.Protocol, t.Src, t.Dst, l4 = p.Protocol(), netip.AddrFrom4(p.Src()), netip.AddrFrom4(p.Dst()), p.Payload()
	case wire.TypeIPv6:
		p, ok := wire.ParseIPv6(b[14:])
		if !ok {
			return t, false
		}
		icmp, request, answer = wire.ProtoICMPv6, wire.ICMPv6Echo, wire.ICMPv6EchoReply
		t.Protocol, t.Src, t.Dst, l4 = p.NextHeader(), netip.AddrFrom16(p.Src()), netip.AddrFrom16(p.Dst()), p[wire.IPv6Len:]
	default:
		return t, false
	}
	need := 8
	if t.Protocol == wire.ProtoTCP {
		need = wire.TCPLen
	}
	if len(l4) < need {
		return Tuple{}, false
	}
	t.DstPort = binary.BigEndian.Uint16(l4)
	switch t.Protocol {
	case wire.ProtoTCP, wire.ProtoUDP:
		t.SrcPort, t.DstPort = t.DstPort, binary.BigEndian.Uint16(l4[2:])
	case icmp:
		if l4[0] != request && l4[0] != answer {
			return Tuple{}, false
		}
	default:
		return Tuple{}, false
	}
	return t, true
}

// Back returns the Tuple of answers.
func (t Tuple) Back() Tuple {
	t.Src, t.Dst = t.Dst, t.Src
	switch t.Protocol {
	case wire.ProtoICMP:
		t.DstPort ^= wire.ICMPEcho << 8 // an answer is of type 0
	case wire.ProtoICMPv6:
		t.DstPort ^= 1 << 8
	default:
		t.SrcPort, t.DstPort = t.DstPort, t.SrcPort
	}
	return t
}

// Hosts returns a Tuple with the addresses alone. It stands for all packets between them.
func (t Tuple) Hosts() Tuple { return Tuple{Src: t.Src, Dst: t.Dst} }

// String returns the tuple in one line, such as "tcp 10.0.0.1:40000 10.0.0.2:80" and "icmp 10.0.0.1 10.0.0.2 8/0", and for all packets
// between two addresses "10.0.0.1 10.0.0.2"; of none it is empty.
func (t Tuple) String() string {
	src, dst := netip.AddrPortFrom(t.Src, t.SrcPort), netip.AddrPortFrom(t.Dst, t.DstPort)
	switch t.Protocol {
	case wire.ProtoTCP:
		return fmt.Sprintf("tcp %v %v", src, dst)
	case wire.ProtoUDP:
		return fmt.Sprintf("udp %v %v", src, dst)
	case wire.ProtoICMP, wire.ProtoICMPv6:
		return fmt.Sprintf("icmp %v %v %d/%d", t.Src, t.Dst, t.DstPort>>8, t.DstPort&0xff)
	}
	if t == (Tuple{}) {
		return ""
	}
	return fmt.Sprintf("%v %v", t.Src, t.Dst)
}
