package frame

// Headroom is the free space in front of a frame of [Batch.New], [Make] or
// [Frame.Clone]. Other frames may have less: those of a received run have none, and
// only the last of them has room behind it.
const Headroom = 64

// Kind is the kind of the packet in a frame.
type Kind uint8

// Kinds of frames.
const (
	Ethernet Kind = iota // an Ethernet frame from the destination MAC on, without FCS
	IPv4                 // a bare IPv4 packet (TUN, IP-in-IP)
	IPv6                 // a bare IPv6 packet
)

// GSO describes how to cut a superframe, in the terms of struct virtio_net_hdr
// (virtio 1.2, section 5.1.6). The zero value is an ordinary frame whose
// checksums are complete. CsumStart and DataStart count from the start of the
// buffer, so that Push and Pull do not change them.
type GSO struct {
	Flags      uint8   // NeedsCsum: the checksum at CsumStart+CsumOffset is incomplete; AnySize
	Type       GSOType // how to segment
	Size       uint16  // payload bytes of a segment
	CsumStart  uint16  // the transport header, from the start of the buffer
	CsumOffset uint16  // the checksum in it, from CsumStart
	DataStart  uint16  // the payload to cut, from the start of the buffer; each segment repeats the headers before it
}

// Moved returns g for the same packet n bytes further back in its buffer, or with a
// negative n further in front.
func (g GSO) Moved(n int) GSO {
	if g == (GSO{}) {
		return g
	}
	g.CsumStart += uint16(n)
	if g.DataStart != 0 { // 0: nothing is cut
		g.DataStart += uint16(n)
	}
	return g
}

// NeedsCsum is the flag of a frame whose transport checksum only covers the pseudo
// header. It must be completed before the frame leaves the machine.
const NeedsCsum = 1

// AnySize is the flag of a TCP packet that may be a superframe, with segments of unknown length:
// Size is a guess, and may become smaller. It is not a flag of virtio.
const AnySize = 0x80

// GSOType says how a superframe is cut; the numbers are virtio's.
type GSOType uint8

// Types of superframes. GSONone is a single frame, whose checksum may be incomplete.
const (
	GSONone GSOType = 0
	GSOTCP4 GSOType = 1
	GSOTCP6 GSOType = 4
	GSOUDP  GSOType = 5    // UDP datagrams of one size (USO), over IPv4 or IPv6
	GSOECN  GSOType = 0x80 // with a TCP type: only the first segment keeps CWR
)

// A Frame is one packet in a buffer with headroom.
//
//	0          off                 end        len(buf)
//	+-----------+-------------------+-----------+
//	| headroom  | Bytes()           | tailroom  |
//	+-----------+-------------------+-----------+
//
// A Frame belongs to the [Reader] that read it, and is valid until the next Read.
// Nothing may write to it while it is staged for sending. To keep it longer, use
// Clone. A stage that makes a new packet clears GSO and GBP.
//
// A Frame has 64 bytes. A [Batch] contains Frames, not pointers.
type Frame struct {
	buf      []byte
	off, end int32

	GSO    GSO    // zero, or how to cut this superframe
	Kind   Kind   // of the packet in Bytes
	Drop   Reason // set by a reader that refuses the frame: it is counted and skipped
	VNI    VNI    // of its network; from the Reader of a tunnel, the tag on the wire
	From   Dest   // where it entered; a reader sets the peer half, the switch the port half
	Hash   uint32 // flow hash, for the outer source port and the path; 0 = not computed yet
	Tunnel bool   // came in through a tunnel

	// Replicated means a copy of a flooded frame, by the tunnel header or a multicast
	// destination: all other peers have got theirs from the sender.
	Replicated bool

	GBP GBP // group policy

	// Horizon is the split-horizon group of the attachment where a routed frame came in. It
	// applies if the frame goes back into that segment.
	Horizon uint8

	// Priority is the priority code point (PCP), 0 to 7, of the VLAN tag that the frame came with, or what a tunnel
	// has made of the outer DSCP; 0 without either. The frame leaves with it where it gets a tag.
	Priority uint8
}

// Over returns a Frame over buf[off:end], which it borrows. It panics if the bounds are
// not in buf.
func Over(buf []byte, off, end int) Frame {
	_ = buf[off:end]
	return Frame{buf: buf, off: int32(off), end: int32(end)}
}

// reset sets f to what Over returns, field by field. A literal would be built on the
// stack by small stores, and the wide loads that copy it would have to wait for them (a
// tenth of a worker's time).
func (f *Frame) reset(buf []byte, off, end int32) {
	f.buf, f.off, f.end = buf, off, end
	f.GSO = GSO{}
	f.Kind, f.Drop, f.VNI, f.From, f.Hash, f.Tunnel, f.Replicated = 0, 0, 0, 0, 0, false, false
	f.GBP, f.Horizon, f.Priority = GBP{}, 0, 0
}

// Make returns a Frame with a copy of packet and [Headroom] in front, for instance to
// inject it.
func Make(packet []byte) Frame {
	buf := make([]byte, Headroom+len(packet))
	copy(buf[Headroom:], packet)
	return Over(buf, Headroom, len(buf))
}

// Bytes returns the packet. The slice is borrowed, like the frame. Its capacity ends with
// the packet, so that append does not overwrite other frames.
func (f *Frame) Bytes() []byte { return f.buf[f.off:f.end:f.end] }

// Len returns the number of bytes in the packet.
func (f *Frame) Len() int { return int(f.end - f.off) }

// SegLen returns the length to compare with an MTU: that of the longest segment of a
// superframe, or of the frame itself.
func (f *Frame) SegLen() int {
	if f.GSO.Size == 0 {
		return f.Len()
	}
	return min(f.Len(), int(f.GSO.DataStart)-int(f.off)+int(f.GSO.Size))
}

// Origin returns From as tables use it. All peers of a tunnel without a number count as one,
// with the highest number.
func (f *Frame) Origin() Dest {
	if f.Tunnel && f.From.Peer() == 0 {
		return f.From | 0xffff
	}
	return f.From
}

// Headroom returns how many bytes Push can add: where the packet begins in its buffer.
func (f *Frame) Headroom() int { return int(f.off) }

// Pull removes n bytes from the front and returns the rest. It panics if the packet is
// shorter.
func (f *Frame) Pull(n int) []byte {
	b := f.Bytes()[n:]
	f.off += int32(n)
	return b
}

// Push extends the packet by n bytes in front, whose contents are undefined, and
// returns it. If the headroom is smaller it returns nil and leaves the frame unchanged.
func (f *Frame) Push(n int) []byte {
	if n < 0 || int(f.off) < n {
		return nil
	}
	f.off -= int32(n)
	return f.Bytes()
}

// Trim keeps the first n bytes of the packet. It panics if there are fewer.
func (f *Frame) Trim(n int) {
	_ = f.buf[f.off : int(f.off)+n : f.end]
	f.end = f.off + int32(n)
}

// Extend is Push at the end of the packet, into the tailroom.
func (f *Frame) Extend(n int) []byte {
	if n < 0 || int(f.end)+n > len(f.buf) {
		return nil
	}
	f.end += int32(n)
	return f.Bytes()
}

// Clone returns a copy with its own buffer, and [Headroom] in front.
func (f *Frame) Clone() Frame {
	c := *f
	b := f.Bytes()
	c.buf = make([]byte, Headroom+len(b))
	copy(c.buf[Headroom:], b)
	c.off, c.end = Headroom, int32(len(c.buf))
	c.GSO = c.GSO.Moved(int(c.off - f.off))
	return c
}
