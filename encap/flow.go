package encap

import (
	"encoding/binary"
	"math/bits"

	"github.com/vxswitch/vxswitch/internal/mix"
)

// EtherTypes and protocols the hash looks at.
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

// FlowHash hashes the flow that an Ethernet frame belongs to: MACs, EtherType, and
// up to two VLAN tags; for IP also addresses and protocol, and the ports unless the
// packet is a fragment. The first fragment is one too, or it would part from the
// rest. The result is never 0 and depends on seed, so that a stranger cannot steer
// flows into one bucket.
func FlowHash(b []byte, seed uint64) uint32 {
	x := second(seed)
	if len(b) < EthernetLen {
		return fold(mix.Fold(seed, uint64(len(b))^x))
	}
	// Both MACs and EtherType or first tag: 14 bytes in two words that overlap.
	h := mix.Fold(seed^binary.BigEndian.Uint64(b), x^binary.BigEndian.Uint64(b[6:]))
	etherType, p := binary.BigEndian.Uint16(b[12:]), b[EthernetLen:]
	for range 2 {
		if (etherType != typeVLAN && etherType != typeQinQ) || len(p) < VLANTagLen {
			break
		}
		h = mix.Fold(h, x^uint64(binary.BigEndian.Uint32(p)))
		etherType, p = binary.BigEndian.Uint16(p[2:]), p[VLANTagLen:]
	}
	// The packet's hash does not wait for the frame's.
	switch {
	case etherType == typeIPv4 && len(p) >= ipv4Len && p[0]>>4 == 4:
		h ^= hashIPv4(seed, x, p)
	case etherType == typeIPv6 && len(p) >= ipv6Len && p[0]>>4 == 6:
		h ^= hashIPv6(seed, x, p)
	}
	return fold(h)
}

// FlowHashIP is FlowHash of a packet without an Ethernet header.
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

func hashIPv4(h, x uint64, p []byte) uint64 {
	proto, ihl := p[9], int(p[0]&0xf)*4
	var ports uint64
	if fragment := binary.BigEndian.Uint16(p[6:])&0x3fff != 0; !fragment && ihl >= ipv4Len {
		ports = portsOf(proto, p, ihl)
	}
	return mix.Fold(bits.RotateLeft64(h, 32)^binary.BigEndian.Uint64(p[12:]), x^uint64(proto)<<32^ports)
}

func hashIPv6(h, x uint64, p []byte) uint64 {
	next := p[6]
	// Behind an extension header, a fragment header among them, there are no ports.
	ports := portsOf(next, p, ipv6Len)
	h = mix.Fold(bits.RotateLeft64(h, 32)^binary.BigEndian.Uint64(p[8:]), x^binary.BigEndian.Uint64(p[16:])^uint64(next)<<32^ports)
	return mix.Fold(h^binary.BigEndian.Uint64(p[24:]), x^binary.BigEndian.Uint64(p[32:]))
}

// portsOf returns source and destination port of the transport header at p[at:].
func portsOf(proto byte, p []byte, at int) uint64 {
	switch proto {
	case protoTCP, protoUDP, protoDCCP, protoSCTP, protoUDPLite:
		if len(p) >= at+4 {
			return uint64(binary.BigEndian.Uint32(p[at:]))
		}
	}
	return 0
}

// second makes another secret of a seed, for the second factor of mix.Fold.
func second(seed uint64) uint64 { return (seed ^ 0x9e3779b97f4a7c15) * 0xd1b54a32d192ed03 }

// fold makes 32 bits of h, each of which depends on all of h. Without the
// multiplication flows that differ in a counter, as source ports do, would be uneven
// for many a seed: the product that mix.Fold ends with takes equal steps.
func fold(h uint64) uint32 {
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	x := uint32(h >> 32)
	if x == 0 {
		return 1
	}
	return x
}
