package gso

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
)

// A Virtio is the header in front of each packet of a device with offloads: struct
// virtio_net_hdr (virtio 1.2, section 5.1.6) in the byte order of the machine, as the
// kernel has it. A device may have a longer one; nothing beyond is used here.
//
//	0       1      2       4       6          8            10
//	+-------+------+-------+-------+----------+-----------+--
//	| flags | type | hdrlen| size  | csumstart| csumoffset|
//	+-------+------+-------+-------+----------+-----------+--
type Virtio [VirtioLen]byte

// VirtioLen is the length of a [Virtio].
const VirtioLen = 10

// DataValid is the flag in the first byte of a received [Virtio] whose packet has a verified checksum.
const DataValid = 2

// GSO returns what the header says of a packet that begins at off in its buffer;
// false when offsets lead beyond what a GSO can say.
func (h *Virtio) GSO(off int) (g frame.GSO, ok bool) {
	if h[0]&frame.NeedsCsum == 0 && h[1] == 0 {
		return g, true
	}
	start := int(binary.NativeEndian.Uint16(h[6:])) + off
	if start > 0xffff {
		return g, false
	}
	return frame.GSO{
		Flags: h[0] & frame.NeedsCsum, Type: frame.GSOType(h[1]), Size: binary.NativeEndian.Uint16(h[4:]),
		CsumStart: uint16(start), CsumOffset: binary.NativeEndian.Uint16(h[8:]),
	}, true
}

// Apply makes f what its header says it is, a superframe, or a frame whose checksum is to be
// completed, if [Check] finds nothing against that. The packet the header speaks of begins at off in
// the buffer.
func (h *Virtio) Apply(f *frame.Frame, off int) frame.Reason {
	g, ok := h.GSO(off)
	if !ok {
		return frame.BadHeader
	}
	if g == (frame.GSO{}) {
		return frame.NotDropped
	}
	f.GSO = g
	r := Check(f)
	if r != frame.NotDropped {
		f.GSO = frame.GSO{}
	}
	return r
}

// Put writes g, whose offsets count from the start of the packet. The length of the
// headers is what the kernel copies into the linear part of its buffer: without it,
// that is the whole packet.
func (h *Virtio) Put(g frame.GSO) {
	*h = Virtio{}
	if g == (frame.GSO{}) {
		return
	}
	h[0], h[1] = g.Flags&frame.NeedsCsum, byte(g.Type)
	binary.NativeEndian.PutUint16(h[2:], max(g.DataStart, g.CsumStart+g.CsumOffset+2))
	binary.NativeEndian.PutUint16(h[4:], g.Size)
	binary.NativeEndian.PutUint16(h[6:], g.CsumStart)
	binary.NativeEndian.PutUint16(h[8:], g.CsumOffset)
}
