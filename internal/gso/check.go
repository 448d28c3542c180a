package gso

import (
	"github.com/vxswitch/vxswitch/frame"
)

// Check verifies the metadata that a device delivered with f against the headers of the packet. The reader has set
// Flags, Type, Size, CsumStart and CsumOffset of f.GSO, with offsets from the start of the buffer. Check sets DataStart,
// clears Type and Size of a packet with a single segment, and clears everything without NeedsCsum. It ignores other
// flags: that a device has verified a checksum (DATA_VALID) has no effect.
//
// A superframe is TCP or UDP over IPv4, or over IPv6 with no extension headers but options, behind up to two VLAN tags. Its
// lengths are those of the whole packet and its checksum is unfinished (virtio 1.2, section 5.1.6). A frame without a
// Type may have any protocol: its checksum must be in the packet, in no other field of the headers, and must not cover
// the Ethernet header.
//
// It returns [frame.BadHeader] if the metadata contradicts the packet, else [frame.NotDropped].
func Check(f *frame.Frame) frame.Reason {
	g := &f.GSO
	g.Flags &= frame.NeedsCsum
	g.DataStart = 0
	if g.Type == frame.GSONone {
		g.Size = 0
		if g.Flags == 0 {
			*g = frame.GSO{}
			return frame.NotDropped
		}
		if _, ok := unfinished(f); !ok {
			return frame.BadHeader
		}
		return frame.NotDropped
	}
	h, ok := super(f)
	if !ok {
		return frame.BadHeader
	}
	data := f.Headroom() + h.data
	if data > 0xffff {
		return frame.BadHeader
	}
	g.DataStart = uint16(data)
	if f.Len()-h.data <= int(g.Size) {
		g.Type, g.Size = frame.GSONone, 0
	}
	return frame.NotDropped
}

// Unfinished sets the metadata of a frame with an unfinished checksum, for a reader without offsets. It returns
// [frame.BadHeader] if f is not TCP or UDP that Check accepts.
func Unfinished(f *frame.Frame) frame.Reason {
	h, ok := locate(f.Bytes(), f.Kind)
	if !ok {
		return frame.BadHeader
	}
	f.GSO = frame.GSO{
		Flags: frame.NeedsCsum, CsumStart: uint16(f.Headroom() + h.l4), CsumOffset: uint16(h.csumOffset()),
	}
	return frame.NotDropped
}

// super returns the headers of a superframe if they match its metadata.
func super(f *frame.Frame) (h headers, ok bool) {
	g := &f.GSO
	if g.Size == 0 || g.Flags&frame.NeedsCsum == 0 {
		return h, false
	}
	if h, ok = locate(f.Bytes(), f.Kind); !ok {
		return h, false
	}
	t := g.Type
	if h.gsoType() != frame.GSOUDP {
		t &^= frame.GSOECN
	}
	ok = t == h.gsoType() && int(g.CsumStart) == f.Headroom()+h.l4 && int(g.CsumOffset) == h.csumOffset()
	return h, ok
}
