package encap

import (
	"encoding/binary"
	"math/bits"

	"github.com/vxswitch/vxswitch/internal/mix"
)

// EtherTypes and protocols that the hash parses.
const (
	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd
	typeVLAN = 0x8100 // 802.1Q
	typeQinQ = 0x88a8 // 802.1ad

	protoTCP     = 6
	protoUDP     = 17
	protoDCCP    = 33
	protoSCTP    = 132
	protoUDPLite = 136
)

// FlowHash returns a hash of the flow of an Ethernet frame: the MACs, the EtherType and up to two VLAN tags; for IP also
// the addresses, the protocol and, except in fragments, the ports. It leaves the ports of the first fragment out too, so
// that all fragments have the same hash. The hash is never 0. A secret seed prevents senders from choosing it.
func FlowHash(b []byte, seed uint64) uint32 {
	// Most frames have TCP or UDP in IPv4, without tags, options and fragments. They take the short way.
	const ports = EthernetLen + ipv4Len
	if len(b) < ports+4 || binary.BigEndian.Uint32(b[12:])>>8 != typeIPv4<<8|0x45 || binary.BigEndian.Uint16(b[20:])&0x3fff != 0 ||
		b[23] != protoTCP && b[23] != protoUDP {
		return flowHash(b, seed)
	}
	x := second(seed)
	return fold(hashEthernet(seed, x, b) ^ hashAddrs4(seed, x, b[EthernetLen:], uint64(binary.BigEndian.Uint32(b[ports:]))))
}

func flowHash(b []byte, seed uint64) uint32 {
	x := second(seed)
	if len(b) < EthernetLen {
		return fold(mix.Fold(seed, uint64(len(b))^x))
	}
	h := hashEthernet(seed, x, b)
	etherType, p := binary.BigEndian.Uint16(b[12:]), b[EthernetLen:]
	for range 2 {
		if (etherType != typeVLAN && etherType != typeQinQ) || len(p) < VLANTagLen {
			break
		}
		h = mix.Fold(h, x^uint64(binary.BigEndian.Uint32(p)))
		etherType, p = binary.BigEndian.Uint16(p[2:]), p[VLANTagLen:]
	}
	// Both hashes can be computed in parallel.
	switch {
	case etherType == typeIPv4 && len(p) >= ipv4Len && p[0]>>4 == 4:
		h ^= hashIPv4(seed, x, p)
	case etherType == typeIPv6 && len(p) >= ipv6Len && p[0]>>4 == 6:
		h ^= hashIPv6(seed, x, p)
	}
	return fold(h)
}

// FlowHashIP is FlowHash for a packet without an Ethernet header.
func FlowHashIP(p []byte, seed uint64) uint32 {
	x := second(seed)
	switch {
	case len(p) >= ipv4Len && p[0]>>4 == 4:
		return fold(hashIPv4(seed, x, p))
	case len(p) >= ipv6Len && p[0]>>4 == 6:
		return fold(hashIPv6(seed, x, p))
	}
	return fold(mix.Fold(seed, uint64(len(p))^x))
}

// hashEthernet hashes both MACs and the EtherType or first tag: 14 bytes in two words that overlap.
func hashEthernet(h, x uint64, b []byte) uint64 {
	return mix.Fold(h^binary.BigEndian.Uint64(b), x^binary.BigEndian.Uint64(b[6:]))
}

func hashIPv4(h, x uint64, p []byte) uint64 {
	return hashAddrs4(h, x, p, ports4(p))
}

// ports4 is portsOf for an IPv4 packet, 0 for a fragment.
func ports4(p []byte) uint64 {
	ihl := int(p[0]&0xf) * 4
	if fragment := binary.BigEndian.Uint16(p[6:])&0x3fff != 0; fragment || ihl < ipv4Len {
		return 0
	}
	return portsOf(p[9], p, ihl)
}

func hashAddrs4(h, x uint64, p []byte, ports uint64) uint64 {
	return mix.Fold(bits.RotateLeft64(h, 32)^binary.BigEndian.Uint64(p[12:]), x^uint64(p[9])<<32^ports)
}

func hashIPv6(h, x uint64, p []byte) uint64 {
	next := p[6]
	// Packets with an extension header, such as fragments, are hashed without ports.
	ports := portsOf(next, p, ipv6Len)
	h = mix.Fold(bits.RotateLeft64(h, 32)^binary.BigEndian.Uint64(p[8:]), x^binary.BigEndian.Uint64(p[16:])^uint64(next)<<32^ports)
	return mix.Fold(h^binary.BigEndian.Uint64(p[24:]), x^binary.BigEndian.Uint64(p[32:]))
}

// portsOf returns the source and destination ports of the transport header at p[at:].
func portsOf(proto byte, p []byte, at int) uint64 {
	switch proto {
	case protoTCP, protoUDP, protoDCCP, protoSCTP, protoUDPLite:
		if len(p) >= at+4 {
			return uint64(binary.BigEndian.Uint32(p[at:]))
		}
	}
	return 0
}

// second derives the second factor of mix.Fold from a seed.
func second(seed uint64) uint64 { return (seed ^ 0x9e3779b97f4a7c15) * 0xd1b54a32d192ed03 }

// fold returns 32 bits that each depend on all bits of h. Without the multiplication, flows that differ in a counter, such
// as a source port, would be distributed unevenly for many seeds.
func fold(h uint64) uint32 {
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	x := uint32(h >> 32)
	if x == 0 {
		return 1
	}
	return x
}
