package encap

import (
	"cmp"
	"encoding/binary"

	"github.com/vxswitch/vxswitch/internal/mix"
)

// SymmetricHash is FlowHash with one hash for both directions of a flow. For IP it covers addresses, protocol and ports alone,
// because routers change MACs and tags on the way; of other frames the MACs and the EtherType. VTEPs with the same seed have
// the same hashes; senders that know it can choose theirs.
func SymmetricHash(b []byte, seed uint64) uint32 {
	x := second(seed)
	if len(b) < EthernetLen {
		return fold(mix.Fold(seed, uint64(len(b))^x))
	}
	etherType, p := binary.BigEndian.Uint16(b[12:]), b[EthernetLen:]
	for range 2 {
		if (etherType != typeVLAN && etherType != typeQinQ) || len(p) < VLANTagLen {
			break
		}
		etherType, p = binary.BigEndian.Uint16(p[2:]), p[VLANTagLen:]
	}
	switch {
	case etherType == typeIPv4 && len(p) >= ipv4Len && p[0]>>4 == 4, etherType == typeIPv6 && len(p) >= ipv6Len && p[0]>>4 == 6:
		return SymmetricHashIP(p, seed)
	}
	dst := endpoint{lo: binary.BigEndian.Uint64(b) >> 16}
	src := endpoint{lo: binary.BigEndian.Uint64(b[4:]) & (1<<48 - 1)}
	return both(seed, x, src, dst, uint64(etherType))
}

// SymmetricHashIP is SymmetricHash for a packet without an Ethernet header.
func SymmetricHashIP(p []byte, seed uint64) uint32 {
	x := second(seed)
	var src, dst endpoint
	var proto byte
	var ports uint64
	switch {
	case len(p) >= ipv4Len && p[0]>>4 == 4:
		proto, ports = p[9], ports4(p)
		src.lo, dst.lo = uint64(binary.BigEndian.Uint32(p[12:])), uint64(binary.BigEndian.Uint32(p[16:]))
	case len(p) >= ipv6Len && p[0]>>4 == 6:
		proto, ports = p[6], portsOf(p[6], p, ipv6Len)
		src.hi, src.lo = binary.BigEndian.Uint64(p[8:]), binary.BigEndian.Uint64(p[16:])
		dst.hi, dst.lo = binary.BigEndian.Uint64(p[24:]), binary.BigEndian.Uint64(p[32:])
	default:
		return fold(mix.Fold(seed, uint64(len(p))^x))
	}
	src.port, dst.port = ports>>16, ports&0xffff
	return both(seed, x, src, dst, uint64(proto)<<32)
}

// An endpoint is one end of a flow: an address of IPv6, of IPv4 or a MAC, and a port.
type endpoint struct{ hi, lo, port uint64 }

// both hashes the two ends of a flow, the lower first.
func both(h, x uint64, a, b endpoint, kind uint64) uint32 {
	if cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo), cmp.Compare(a.port, b.port)) > 0 {
		a, b = b, a
	}
	h = mix.Fold(h^a.lo, x^b.lo)
	if a.hi|b.hi != 0 {
		h = mix.Fold(h^a.hi, x^b.hi)
	}
	return fold(mix.Fold(h^kind, x^(a.port<<16|b.port)))
}
