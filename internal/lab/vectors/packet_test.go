package vectors

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// what is in a packet.
type what uint8

const (
	datagramTo9 what = iota // UDP
	echo
	echoReply
	syn // TCP, with an MSS of its own
)

// A packet is one that gopacket writes: whatever checksum it has is not ours.
type packet struct {
	from, to frame.MAC
	src, dst netip.Addr
	ttl      uint8
	tos      uint8 // or traffic class
	df       bool  // IPv4 only
	id       uint16
	what     what
	sport    uint16
	mss      uint16
	payload  int
	bare     bool // without an Ethernet header, as on an IP port
}

// packetOf is a host's packet for an address, to the MAC of its gateway.
func packetOf(from frame.MAC, src netip.Addr, to frame.MAC, dst netip.Addr) packet {
	return packet{from: from, to: to, src: src, dst: dst, ttl: 64, df: true, id: 7, payload: 64}
}

// routed is the packet as a gateway sends it on.
func (p packet) routed(from, to frame.MAC) packet {
	p.from, p.to = from, to
	p.ttl--
	return p
}

// asEcho makes an echo request of it.
func (p packet) asEcho() packet { p.what = echo; return p }

// sentBy has a host send it.
func (p packet) sentBy(h *mem.Host) packet {
	h.Send(p.bytes())
	return p
}

// reaches fails the test unless a host gets it from its gateway, with one hop less.
func (p packet) reaches(h *mem.Host) packet {
	h.T().Helper()
	p = p.routed(gwMAC, h.MAC)
	h.Want(p.bytes())
	return p
}

// replied is the answer to an echo request, by who has got it.
func (p packet) replied() packet {
	p.from, p.to, p.src, p.dst, p.ttl, p.what = p.to, p.from, p.dst, p.src, 64, echoReply
	return p
}

// naked is the packet on an IP port.
func (p packet) naked() packet { p.bare = true; return p }

func (p packet) bytes() []byte {
	eth := &layers.Ethernet{SrcMAC: p.from[:], DstMAC: p.to[:], EthernetType: layers.EthernetTypeIPv4}
	var network interface {
		gopacket.NetworkLayer
		gopacket.SerializableLayer
	}
	v6 := p.src.Is6()
	proto := map[what]layers.IPProtocol{datagramTo9: layers.IPProtocolUDP, echo: layers.IPProtocolICMPv4, echoReply: layers.IPProtocolICMPv4, syn: layers.IPProtocolTCP}[p.what]
	if v6 {
		if proto == layers.IPProtocolICMPv4 {
			proto = layers.IPProtocolICMPv6
		}
		eth.EthernetType = layers.EthernetTypeIPv6
		network = &layers.IPv6{Version: 6, HopLimit: p.ttl, TrafficClass: p.tos, NextHeader: proto, SrcIP: p.src.AsSlice(), DstIP: p.dst.AsSlice()}
	} else {
		ip := &layers.IPv4{Version: 4, TTL: p.ttl, TOS: p.tos, Id: p.id, Protocol: proto, SrcIP: p.src.AsSlice(), DstIP: p.dst.AsSlice()}
		if p.df {
			ip.Flags = layers.IPv4DontFragment
		}
		network = ip
	}
	all := []gopacket.SerializableLayer{eth, network}
	if p.bare {
		all = all[1:]
	}
	switch proto {
	case layers.IPProtocolUDP:
		u := &layers.UDP{SrcPort: layers.UDPPort(p.sport), DstPort: 9}
		u.SetNetworkLayerForChecksum(network)
		all = append(all, u)
	case layers.IPProtocolTCP:
		t := &layers.TCP{SrcPort: layers.TCPPort(p.sport), DstPort: 80, SYN: true, Window: 1000, Options: []layers.TCPOption{
			{OptionType: layers.TCPOptionKindMSS, OptionLength: 4, OptionData: []byte{byte(p.mss >> 8), byte(p.mss)}},
		}}
		t.SetNetworkLayerForChecksum(network)
		all = append(all, t)
	case layers.IPProtocolICMPv4:
		typ := map[what]uint8{echo: layers.ICMPv4TypeEchoRequest, echoReply: layers.ICMPv4TypeEchoReply}[p.what]
		all = append(all, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(typ, 0), Id: 3, Seq: 4})
	case layers.IPProtocolICMPv6:
		typ := map[what]uint8{echo: layers.ICMPv6TypeEchoRequest, echoReply: layers.ICMPv6TypeEchoReply}[p.what]
		c := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(typ, 0)}
		c.SetNetworkLayerForChecksum(network)
		all = append(all, c, &layers.ICMPv6Echo{Identifier: 3, SeqNumber: 4})
	}
	data := make([]byte, p.payload)
	for i := range data {
		data[i] = byte(i)
	}
	return packets.Of(append(all, gopacket.Payload(data))...)
}

// A refusal is an ICMP error's type and code, of both families.
type refusal struct{ v4, v6 [2]uint8 }

// RFC 792 and RFC 4443, section 3.
var (
	exceeded   = refusal{[2]uint8{11, 0}, [2]uint8{3, 0}}
	noWay      = refusal{[2]uint8{3, 0}, [2]uint8{1, 0}}
	hostGone   = refusal{[2]uint8{3, 1}, [2]uint8{1, 3}}
	portClosed = refusal{[2]uint8{3, 3}, [2]uint8{1, 4}}
	tooLong    = refusal{[2]uint8{3, 4}, [2]uint8{2, 0}}
)

// about is the error that the sender of p hears, as its frame comes back: from a gateway's
// address, with an MTU or 0, and as much of the packet as it is to quote.
func (e refusal) about(p packet, gateway netip.Addr, mtu int) []byte {
	quoted := p.naked().bytes()
	eth := &layers.Ethernet{SrcMAC: p.to[:], DstMAC: p.from[:], EthernetType: layers.EthernetTypeIPv4}
	var all []gopacket.SerializableLayer
	if gateway.Is6() {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolICMPv6, SrcIP: gateway.AsSlice(), DstIP: p.src.AsSlice()}
		c := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(e.v6[0], e.v6[1])}
		c.SetNetworkLayerForChecksum(ip)
		rest := append([]byte{0, 0, byte(mtu >> 8), byte(mtu)}, quoted[:min(len(quoted), 1280-48)]...) // RFC 4443, section 2.4, c
		all = []gopacket.SerializableLayer{eth, ip, c, gopacket.Payload(rest)}
	} else {
		ip := &layers.IPv4{
			Version: 4, TTL: 64, TOS: 0xc0, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolICMPv4,
			SrcIP: gateway.AsSlice(), DstIP: p.src.AsSlice(),
		}
		c := &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(e.v4[0], e.v4[1]), Seq: uint16(mtu)}
		all = []gopacket.SerializableLayer{eth, ip, c, gopacket.Payload(quoted[:min(len(quoted), 576-28)])} // RFC 1812, section 4.3.2.3
	}
	if p.bare {
		all = all[1:]
	}
	return packets.Of(all...)
}

func udp4(ip []byte) {
	copy(ip, []byte{0x45, 0, byte(len(ip) >> 8), byte(len(ip)), 0x12, 0x34, 0x40, 0, 63, 17, 0, 0, 192, 168, 0, 1, 192, 168, 0, 2})
}

func udp6(ip []byte) {
	n := len(ip) - 40
	copy(ip, []byte{0x60, 0, 0, 0, byte(n >> 8), byte(n), 17, 63, 0xfd, 23: 1, 24: 0xfd, 39: 2})
}

// ip4 returns a frame with an IPv4 packet of n bytes, its checksum right.
func ip4(dst, src frame.MAC, n int, changes ...func(ip []byte)) []byte {
	ip := make([]byte, n)
	for i := range ip {
		ip[i] = byte(i)
	}
	for _, change := range changes {
		change(ip)
	}
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], ones(ip[:ip[0]&15*4]))
	return mem.Ethernet(dst, src, 0x0800, ip)
}

// ip6 returns a frame with an IPv6 packet of n bytes.
func ip6(dst, src frame.MAC, n int, changes ...func(ip []byte)) []byte {
	ip := make([]byte, n)
	for i := range ip {
		ip[i] = byte(i)
	}
	for _, change := range changes {
		change(ip)
	}
	return mem.Ethernet(dst, src, 0x86dd, ip)
}

// ones is the checksum of RFC 1071, word by word.
func ones(b []byte) uint16 {
	var sum uint32
	for i, c := range b {
		sum += uint32(c) << (8 * (1 - i&1))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// answer is what the sender of a long frame hears (RFC 1812, section 4.3.2.3; RFC 4443, section 2.4, c).
func answer(in []byte, mtu int) []byte {
	if in[12] == 0x86 {
		return answer6(in, mtu, 1232)
	}
	return answer4(in, mtu, 548)
}

// answer4 is what the sender of a frame hears: so many bytes of its packet in ICMP
// type 3, code 4, from the host it was for.
func answer4(in []byte, mtu, quote int) []byte {
	p := in[14 : 14+quote]
	icmp := append([]byte{3, 4, 0, 0, 0, 0, byte(mtu >> 8), byte(mtu)}, p...)
	binary.BigEndian.PutUint16(icmp[2:], ones(icmp))
	n := 20 + len(icmp)
	ip := append([]byte{0x45, 0xc0, byte(n >> 8), byte(n), 0, 0, 0x40, 0, 64, 1, 0, 0}, p[16:20]...)
	ip = append(ip, p[12:16]...)
	binary.BigEndian.PutUint16(ip[10:], ones(ip))
	return mem.Ethernet(frame.MAC(in[6:]), frame.MAC(in), 0x0800, append(ip, icmp...))
}

// answer6 is likewise ICMPv6 type 2.
func answer6(in []byte, mtu, quote int) []byte {
	p := in[14 : 14+quote]
	icmp := append([]byte{2, 0, 0, 0, 0, 0, byte(mtu >> 8), byte(mtu)}, p...)
	n := len(icmp)
	pseudo := slices.Concat(p[24:40], p[8:24], []byte{0, 0, byte(n >> 8), byte(n), 0, 0, 0, 58}, icmp)
	binary.BigEndian.PutUint16(icmp[2:], ones(pseudo))
	ip := append([]byte{0x60, 0, 0, 0, byte(n >> 8), byte(n), 58, 64}, pseudo[:32]...)
	return mem.Ethernet(frame.MAC(in[6:]), frame.MAC(in), 0x86dd, append(ip, icmp...))
}
