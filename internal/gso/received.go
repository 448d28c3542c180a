package gso

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A kernel's tunnel device over a veth leaves inner checksums and segmentation to hardware that a veth does not have: a TCP or
// UDP checksum has the pseudo header only, and a superframe is whole. User space receives no metadata (Linux 6.18).

// Pending reports whether the TCP or UDP checksum of p may be unfinished; [Received] verifies that. It runs for every
// packet, so it checks only that field, first for TCP and UDP over IPv4 without options over Ethernet.
func Pending(p []byte, kind frame.Kind) bool {
	if kind != frame.Ethernet || len(p) < wire.EthernetLen+wire.IPv4Len+wire.TCPLen {
		return pending(p, kind)
	}
	start := binary.BigEndian.Uint64(p[12:]) // type, version, header length, TOS, length, identification
	if start>>40 != wire.TypeIPv4<<8|4<<4|wire.IPv4Len/4 {
		return pending(p, frame.Ethernet)
	}
	var sum uint16
	proto := p[23]
	switch proto {
	case wire.ProtoTCP:
		sum = binary.BigEndian.Uint16(p[50:])
	case wire.ProtoUDP:
		sum = binary.BigEndian.Uint16(p[40:])
	}
	if sum == 0 {
		return false
	}
	addrs := binary.BigEndian.Uint64(p[26:])
	return same(sum, addrs>>32+addrs&0xffffffff+uint64(proto)+start>>16&0xffff-wire.IPv4Len)
}

// pending is Pending for other packets.
func pending(p []byte, kind frame.Kind) bool {
	at, is4, ok := network(p, kind)
	if !ok {
		return false
	}
	ip := p[at:]
	if is4 {
		if len(ip) < wire.IPv4Len+wire.UDPLen {
			return false
		}
		return ip[0] != 4<<4|wire.IPv4Len/4 || left(ip[wire.IPv4Len:], ip[9], uint64(wire.IPv4(ip).TotalLen())-wire.IPv4Len+
			uint64(binary.BigEndian.Uint32(ip[12:]))+uint64(binary.BigEndian.Uint32(ip[16:])))
	}
	if len(ip) < wire.IPv6Len+wire.UDPLen {
		return false
	}
	next := ip[6]
	if next == wire.ProtoHopByHop || next == wire.ProtoDstOpts {
		return true
	}
	sum := uint64(wire.IPv6(ip).PayloadLen())
	for a := ip[8:wire.IPv6Len]; len(a) >= 4; a = a[4:] {
		sum += uint64(binary.BigEndian.Uint32(a))
	}
	return left(ip[wire.IPv6Len:], next, sum)
}

// left is Pending for a transport packet of at least 8 bytes, with the sum of the rest of its pseudo header.
func left(l4 []byte, proto uint8, pseudo uint64) bool {
	var sum uint16
	switch {
	case proto == wire.ProtoTCP && len(l4) >= wire.TCPLen:
		sum = binary.BigEndian.Uint16(l4[wire.TCPChecksum:])
	case proto == wire.ProtoUDP:
		sum = binary.BigEndian.Uint16(l4[wire.UDPChecksum:])
	}
	return sum != 0 && same(sum, pseudo+uint64(proto))
}

// same reports whether sum, not 0, is the [wire.Fold] of a small sum, which is equal to it modulo 0xffff.
func same(sum uint16, of uint64) bool { return (of+0xffff-uint64(sum))%0xffff == 0 }

// Received sets the metadata of a frame from a tunnel if its checksum is unfinished, that is, if it is the sum of the pseudo
// header. A right checksum that equals that sum by chance stays the same when it is finished.
//
// Such a packet longer than mtu is a superframe. Its segment size is not known: Received uses the largest that mtu allows,
// or for UDP f.GSO.Size if it is set. The rest of f.GSO must be zero.
//
// Received leaves all other frames unchanged: fragments, inconsistent lengths, other checksums.
func Received(f *frame.Frame, mtu int) {
	told := int(f.GSO.Size)
	f.GSO = frame.GSO{}
	p := unpadded(f.Bytes(), f.Kind)
	h, ok := locate(p, f.Kind)
	data := f.Headroom() + h.data
	if !ok || data > 0xffff || !h.unfinished(p) {
		return
	}
	f.Trim(len(p)) // padding is in no pseudo header: the sum would be over more
	f.GSO = frame.GSO{Flags: frame.NeedsCsum, CsumStart: uint16(f.Headroom() + h.l4), CsumOffset: uint16(h.csumOffset())}
	size := mtu - h.data
	if len(p) <= mtu {
		size = 0
	}
	switch {
	case h.proto == wire.ProtoTCP:
		f.GSO.Flags |= frame.AnySize
	case told != 0:
		size = told
	}
	if size > 0 && h.data+size < len(p) && h.headerOK(p) {
		f.GSO.Type, f.GSO.Size, f.GSO.DataStart = h.gsoType(), uint16(size), uint16(data)
	}
}

// minSegment is the smallest payload of a TCP segment (TCP_MIN_SND_MSS in Linux).
const minSegment = 48

// Shorten limits the segments of f to mtu if f has frame.AnySize, and reports whether it did.
func Shorten(f *frame.Frame, mtu int) bool {
	if f.GSO.Flags&frame.AnySize == 0 {
		return false
	}
	p := f.Bytes()
	h, ok := locate(p, f.Kind)
	if size := mtu - h.data; ok && size >= minSegment && h.headerOK(p) {
		f.GSO.Type, f.GSO.Size, f.GSO.DataStart = h.gsoType(), uint16(size), uint16(f.Headroom()+h.data)
		return true
	}
	return false
}

// Superframe reports whether all of p is one packet with an unfinished checksum.
func Superframe(p []byte, kind frame.Kind) bool {
	h, ok := locate(p, kind)
	return ok && h.unfinished(p) && h.headerOK(p)
}

// unfinished reports whether the transport checksum is the sum of the pseudo header.
func (h *headers) unfinished(p []byte) bool {
	return binary.BigEndian.Uint16(p[h.l4+h.csumOffset():]) == wire.Fold(h.pseudo(p, len(p)-h.l4))
}

// headerOK reports whether the checksum of the IPv4 header is right, or there is none. Segments always get a right one.
func (h *headers) headerOK(p []byte) bool {
	return !h.is4 || wire.Fold(wire.Sum(p[h.l3:h.l4], 0)) == 0xffff
}

// unpadded returns p without padding after the IP packet.
func unpadded(p []byte, kind frame.Kind) []byte {
	at, is4, ok := network(p, kind)
	switch {
	case !ok:
	case is4 && len(p) >= at+wire.IPv4Len:
		return p[:min(len(p), at+wire.IPv4(p[at:]).TotalLen())]
	case !is4 && len(p) >= at+wire.IPv6Len:
		return p[:min(len(p), at+wire.IPv6Len+wire.IPv6(p[at:]).PayloadLen())]
	}
	return p
}
