package fuzz

import (
	"encoding/binary"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Hosts 0 to 15 are told apart by the last byte of their addresses. Host 14 is what
// gateways call themselves, and 15 who they are in common.
func hostMAC(n int) frame.MAC { return frame.MAC{2, 0, 0, 0, 0, byte(n)} }

func addr4(network, n int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(network), 0, byte(n)}) }

func addr6(network, n int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: byte(network), 15: byte(n)})
}

// groups are MACs of no host that frames go to.
var groups = []frame.MAC{
	frame.Broadcast, {1, 0, 0x5e, 0, 0, 1}, {0x33, 0x33, 0, 0, 0, 1}, {0x33, 0x33, 0xff, 0, 0, 1}, {1, 0x80, 0xc2, 0, 0, 0}, {},
}

// frameOf makes a frame as a host would, out of a few choices, and then changes some bytes
// of it, if any.
func frameOf(d *draw) []byte {
	kind := d.under(12)
	from, to := d.under(16), d.under(16)
	network, away := 1+d.under(3), 1+d.under(8)
	size := int(d.byte()) * 8
	if d.byte()&7 == 7 { // to the gateway itself
		away, to = network, 15
	}
	var b []byte
	switch kind {
	case 0:
		b = arpOf(1, network, from, to)
	case 1:
		b = arpOf(2, network, from, to)
	case 2, 3:
		b = ndOf(byte(135+kind-2), network, from, to)
	case 4, 5, 6:
		b = ip4Of([]byte{wire.ProtoTCP, wire.ProtoUDP, wire.ProtoICMP}[kind-4], network, from, away, to, size, d.byte())
	case 7, 8, 9:
		b = ip6Of([]byte{wire.ProtoTCP, wire.ProtoUDP, wire.ProtoICMPv6}[kind-7], network, from, away, to, size, d.byte())
	case 10:
		b = append(make([]byte, 12, 14+size), 0x88, 0xb5)
		b = append(b, make([]byte, size)...)
	default:
		b = append(make([]byte, 0, 64), d.bytes(d.under(64))...)
	}
	if kind < 11 {
		dst, src := hostMAC(to), hostMAC(from)
		if k := d.byte(); k&7 == 7 {
			dst = groups[int(k>>3)%len(groups)]
		} else if k&7 == 6 {
			dst = hostMAC(14 + int(k>>3)&1)
		}
		copy(b, dst[:])
		copy(b[6:], src[:])
	}
	for n := d.under(4); n > 0 && len(b) > 0; n-- {
		b[int(d.word())%len(b)] = d.byte()
	}
	if n := d.byte(); n&15 == 15 {
		b = b[:len(b)*int(n>>4)/16]
	}
	return b
}

// tagged puts a VLAN tag into a frame.
func tagged(b []byte, tag uint32) []byte {
	if tag == 0 || len(b) < 12 {
		return b
	}
	return append(append(append(make([]byte, 0, len(b)+4), b[:12]...), 0x81, 0, byte(tag>>8), byte(tag)), b[12:]...)
}

func arpOf(op byte, network, from, to int) []byte {
	b := make([]byte, 42)
	b[12], b[13] = 8, 6
	copy(b[14:], []byte{0, 1, 8, 0, 6, 4, 0, op})
	src, dst := hostMAC(from), hostMAC(to)
	copy(b[22:], src[:])
	copy(b[28:], addr4(network, from).AsSlice())
	if op == 2 {
		copy(b[32:], dst[:])
	}
	copy(b[38:], addr4(network, to).AsSlice())
	return b
}

func ndOf(typ byte, network, from, to int) []byte {
	body := make([]byte, 32)
	body[0] = typ
	dst, opt := addr6(network, to), byte(1)
	target := dst
	if typ == 136 {
		body[4], opt, target = 0x60, 2, addr6(network, from)
	}
	copy(body[8:], target.AsSlice())
	body[24], body[25] = opt, 1
	mac := hostMAC(from)
	copy(body[26:], mac[:])
	b := header6(wire.ProtoICMPv6, addr6(network, from), dst, len(body), 255)
	b = append(b, body...)
	seal(b[14+wire.IPv6Len:], wire.ProtoICMPv6, wire.Pseudo6(b[14:], wire.ProtoICMPv6, len(body)))
	return b
}

// transport is a header and a payload of n bytes; how chooses flags and types.
func transport(proto byte, n int, how byte) []byte {
	switch proto {
	case wire.ProtoTCP:
		b := make([]byte, 24+n)
		binary.BigEndian.PutUint16(b, 1000)
		binary.BigEndian.PutUint16(b[2:], 80)
		b[12], b[13] = 6<<4, []byte{wire.SYN, wire.SYN | wire.ACK, wire.ACK, wire.FIN | wire.ACK}[how&3]
		copy(b[20:], []byte{2, 4, 5, 0xb4})
		return b
	case wire.ProtoUDP:
		b := make([]byte, 8+n)
		binary.BigEndian.PutUint16(b, 5000)
		binary.BigEndian.PutUint16(b[2:], []uint16{53, 67, 4789, 5000}[how&3])
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
		return b
	}
	b := make([]byte, 8+n)
	b[0] = []byte{8, 0, 3, 11}[how&3]
	if proto == wire.ProtoICMPv6 {
		b[0] = []byte{128, 129, 1, 2}[how&3]
	}
	return b
}

// seal writes the checksum of a transport header; of some lengths, what a kernel leaves to a
// network card in its place.
func seal(b []byte, proto byte, pseudo uint64) {
	at := 2
	switch proto {
	case wire.ProtoTCP:
		at = wire.TCPChecksum
	case wire.ProtoUDP:
		at = wire.UDPChecksum
	case wire.ProtoICMP:
		pseudo = 0
	}
	if at != 2 && len(b)%8 == 3 {
		binary.BigEndian.PutUint16(b[at:], wire.Fold(pseudo))
		return
	}
	binary.BigEndian.PutUint16(b[at:], 0)
	binary.BigEndian.PutUint16(b[at:], wire.Checksum(wire.Sum(b, pseudo)))
}

// ip4Of makes a packet; how chooses DF, fragments, TTL and ECN too.
func ip4Of(proto byte, network, from, away, to, n int, how byte) []byte {
	body := transport(proto, n, how)
	b := append(make([]byte, 14+wire.IPv4Len, 14+wire.IPv4Len+len(body)), body...)
	b[12], b[13] = 8, 0
	h := wire.IPv4Header{
		TOS: how >> 6, TTL: []byte{64, 1, 2, 0}[how>>4&3], Protocol: proto, ID: 7, DF: how&4 == 0, TotalLen: uint16(wire.IPv4Len + len(body)),
		Src: addr4(network, from).As4(), Dst: addr4(away, to).As4(),
	}
	h.Put(b[14:])
	seal(b[14+wire.IPv4Len:], proto, wire.Pseudo4(b[14:], proto, len(body)))
	if how&8 != 0 { // a fragment, the first one or the last possible one
		off := uint16(0x2000)
		if how&1 != 0 {
			off = 0x1fff
		}
		binary.BigEndian.PutUint16(b[20:], off)
		p := wire.IPv4(b[14:])
		p.SetChecksum(0)
		p.SetChecksum(wire.Checksum(wire.Sum(p[:wire.IPv4Len], 0)))
	}
	return b
}

func header6(proto byte, src, dst netip.Addr, n int, limit byte) []byte {
	b := make([]byte, 14+wire.IPv6Len, 14+wire.IPv6Len+n)
	b[12], b[13] = 0x86, 0xdd
	h := wire.IPv6Header{NextHeader: proto, HopLimit: limit, PayloadLen: uint16(n), Src: src.As16(), Dst: dst.As16()}
	h.Put(b[14:])
	return b
}

func ip6Of(proto byte, network, from, away, to, n int, how byte) []byte {
	body := transport(proto, n, how)
	b := header6(proto, addr6(network, from), addr6(away, to), len(body), []byte{64, 1, 2, 0}[how>>4&3])
	b = append(b, body...)
	seal(b[14+wire.IPv6Len:], proto, wire.Pseudo6(b[14:], proto, len(body)))
	b[15] |= how >> 6 << 4
	return b
}
