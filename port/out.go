package port

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
)

const (
	macLen   = 12 // both addresses of an Ethernet header
	ethLen   = 14
	vlanLen  = 4
	vlanMask = 0xfff
)

// unfit says why a port for Ethernet cannot send the frame, or NotDropped.
func unfit(o *frame.Out) frame.Reason {
	switch {
	case o.F.Kind != frame.Ethernet:
		return frame.BadKind
	case o.Tag != 0 && o.F.Len() < macLen:
		return frame.Short
	}
	return frame.NotDropped
}

// unfitIP is unfit for a port that carries IP packets.
func unfitIP(o *frame.Out) frame.Reason {
	if o.F.Kind != frame.IPv4 && o.F.Kind != frame.IPv6 || o.Tag != 0 {
		return frame.BadKind
	}
	return frame.NotDropped
}

// A tagHead is the scratch memory a VLAN tag is gathered from: the start of the
// tagged frame, up to and with the tag (IEEE 802.1Q, section 9.6; priority 0).
//
//	 0            6            12       14     16
//	+------------+------------+--------+------+----------------
//	| dst        | src        | 0x8100 | TCI  | rest of frame
//	+------------+------------+--------+------+----------------
type tagHead [macLen + vlanLen]byte

// gather appends to parts the packet that is in pieces, with the tag in it if that is
// not 0. The first piece then has at least 12 bytes.
func (h *tagHead) gather(parts [][]byte, tag uint32, pieces ...[]byte) [][]byte {
	if tag != 0 {
		first := pieces[0]
		copy(h[:macLen], first)
		h[12], h[13] = 0x81, 0x00
		h[14], h[15] = byte(tag&vlanMask>>8), byte(tag)
		parts = append(parts, h[:], first[macLen:])
		pieces = pieces[1:]
	}
	return append(parts, pieces...)
}

// A plain makes of what is on its way out of a port the frames that a receiver
// without offloads understands: superframes are cut and checksums completed.
type plain struct {
	cutter   gso.Cutter
	head     tagHead
	segments [][]byte
	parts    [][]byte
}

// each calls send with each frame that o is, in pieces, in order. It stops at the
// first that is not sent, and returns why.
func (p *plain) each(o *frame.Out, send func(parts [][]byte) frame.Reason) frame.Reason {
	if o.F.GSO == (frame.GSO{}) {
		p.parts = p.head.gather(p.parts[:0], o.Tag, o.F.Bytes())
		r := send(p.parts)
		clear(p.parts) // borrowed
		return r
	}
	p.cutter.Reset()
	p.segments, _ = p.cutter.Cut(p.segments[:0], nil, o.F)
	r := frame.NotDropped
	if len(p.segments) == 0 || o.Tag != 0 && len(p.segments[0]) < macLen {
		r = frame.BadHeader
	}
	for s := p.segments; r == frame.NotDropped && len(s) > 0; s = s[2:] {
		p.parts = p.head.gather(p.parts[:0], o.Tag, s[0], s[1])
		r = send(p.parts)
	}
	clear(p.segments)
	clear(p.parts)
	return r
}

// dropAll gives every frame the same reason.
func dropAll(out []frame.Out, r frame.Reason) {
	for i := range out {
		out[i].Drop = r
	}
}
