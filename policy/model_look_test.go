package policy

import (
	"net/netip"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
)

// seenBy is a frame as gopacket sees it.
type seenBy struct {
	eth                 *layers.Ethernet
	etherType           uint16
	src, dst            netip.Addr
	protocol            uint8
	ports, icmp         bool
	sport, dport        uint16
	typ, code           uint8
	id                  int
	syn, synack, other  bool // SYN alone; with ACK; FIN or RST
	first, later        bool
	fragment            int
	group               uint16
	arp, nd, request, r bool
	about               *seenBy
}

func look(b []byte, kind frame.Kind) (s seenBy) {
	start := gopacket.Decoder(layers.LayerTypeEthernet)
	switch kind {
	case frame.IPv4:
		start = layers.LayerTypeIPv4
	case frame.IPv6:
		start = layers.LayerTypeIPv6
	}
	p := gopacket.NewPacket(b, start, gopacket.Default)
	for _, l := range p.Layers() {
		if s.src.IsValid() { // what is inside is no matter
			break
		}
		switch l := l.(type) {
		case *layers.Ethernet:
			s.eth, s.etherType = l, uint16(l.EthernetType)
		case *layers.Dot1Q:
			s.etherType = uint16(l.Type)
		case *layers.ARP:
			s.arp = true
		case *layers.IPv4:
			s.etherType, s.protocol = 0x800, uint8(l.Protocol)
			s.src, s.dst = addrOf(l.SrcIP), addrOf(l.DstIP)
			s.later, s.fragment = l.FragOffset != 0, int(l.Id)
			s.first = !s.later && l.Flags&layers.IPv4MoreFragments != 0
			if s.first { // of which gopacket shows no more
				s.upper(gopacket.NewPacket(l.Payload, l.Protocol.LayerType(), gopacket.Default))
			}
		case *layers.IPv6:
			s.etherType, s.protocol = 0x86dd, uint8(l.NextHeader)
			s.src, s.dst = addrOf(l.SrcIP), addrOf(l.DstIP)
			if s.protocol == 44 {
				h := l.Payload
				s.protocol, s.later, s.fragment = h[0], h[2] != 0 || h[3] > 1, int(h[6])<<8|int(h[7])
				if s.first = !s.later; s.first {
					s.upper(gopacket.NewPacket(h[8:], layers.IPProtocol(h[0]).LayerType(), gopacket.Default))
				}
			}
		}
	}
	if !s.first && !s.later {
		s.upper(p)
	}
	s.nd = !s.first && s.etherType == 0x86dd && s.protocol == 58 && s.typ >= 133 && s.typ <= 136
	return s
}

func addrOf(ip []byte) netip.Addr { a, _ := netip.AddrFromSlice(ip); return a }

func (s *seenBy) upper(p gopacket.Packet) {
	for _, l := range p.Layers() {
		if s.ports || s.icmp || l.LayerType() == layers.LayerTypeGRE {
			break
		}
		switch l := l.(type) {
		case *layers.TCP:
			s.ports, s.sport, s.dport = true, uint16(l.SrcPort), uint16(l.DstPort)
			s.other = l.FIN || l.RST
			s.syn, s.synack = l.SYN && !l.ACK && !s.other, l.SYN && l.ACK
		case *layers.UDP:
			s.ports, s.sport, s.dport = true, uint16(l.SrcPort), uint16(l.DstPort)
		case *layers.SCTP:
			s.ports, s.sport, s.dport = true, uint16(l.SrcPort), uint16(l.DstPort)
		case *layers.ICMPv4:
			s.icmp, s.typ, s.code, s.id = true, l.TypeCode.Type(), l.TypeCode.Code(), int(l.Id)
			s.request, s.r = s.typ == 8, s.typ == 0
			if s.typ == 3 {
				q := look(l.Payload, frame.IPv4)
				s.about = &q
			}
		case *layers.ICMPv6:
			s.icmp, s.typ, s.code = true, l.TypeCode.Type(), l.TypeCode.Code()
			s.request, s.r = s.typ == 128, s.typ == 129
			if s.request || s.r {
				s.id = int(l.Payload[0])<<8 | int(l.Payload[1])
			}
			if s.typ == 1 {
				q := look(l.Payload[4:], frame.IPv6)
				s.about = &q
			}
		}
	}
}

// key returns the flow as its opener would send it, and whether this is the opener.
func (s *seenBy) key(vni frame.VNI) modelKey {
	k := modelKey{vni, s.src, s.dst, s.protocol, int(s.sport), int(s.dport)}
	switch {
	case s.request:
		k.a, k.b = s.id, -1
	case s.r:
		k.a, k.b = -1, s.id
	}
	return k
}

func (s *seenBy) flowing() bool {
	if !s.src.IsValid() || s.later || s.nd || s.dst.IsMulticast() {
		return false
	}
	return !s.icmp || s.request || s.r
}
