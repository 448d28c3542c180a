package frame

// Headroom is the free space in front of a frame made by [Batch.New], [Make]
// or [Frame.Clone]. It is what those frames start with, not a promise about
// every frame: one that was split out of a run that was received in one piece has
// none, and room behind it only if it was the last.
const Headroom = 64

// Kind says what the first byte of [Frame.Bytes] belongs to.
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
// frame's buffer, so that Push and Pull leave them alone.
type GSO struct {
	Flags      uint8   // NeedsCsum: the checksum at CsumStart+CsumOffset is to be completed; AnySize
	Type       GSOType // how to segment
	Size       uint16  // payload bytes of a segment
	CsumStart  uint16  // the transport header, from the start of the buffer
	CsumOffset uint16  // the checksum in it, from CsumStart
	DataStart  uint16  // the payload that is cut, from the start of the buffer; each segment repeats what is before it
}

// Moved returns what g is for the same packet n bytes further back in its buffer, or with
// a negative n further in front.
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

// NeedsCsum is the flag of a frame whose transport checksum covers the pseudo header
// only: the sender to another machine completes it.
const NeedsCsum = 1

// AnySize is the flag, not virtio's, of a TCP packet that may be a superframe or not, and of which
// nobody has said how long its segments are to be: Size is a guess, and may become smaller.
const AnySize = 0x80

// GSOType says how a superframe is cut; the numbers are virtio's.
type GSOType uint8

// Kinds of superframes. One without a Type is one frame, whose checksum may still be
// unfinished.
const (
	GSONone GSOType = 0
	GSOTCP4 GSOType = 1
	GSOTCP6 GSOType = 4
	GSOUDP  GSOType = 5    // UDP datagrams of one size (USO), over IPv4 or IPv6
	GSOECN  GSOType = 0x80 // beside a TCP type: the first segment only keeps CWR
)

// A Frame is one packet in a buffer with headroom.
//
//	0          off                 end        len(buf)
//	+-----------+-------------------+-----------+
//	| headroom  | Bytes()           | tailroom  |
//	+-----------+-------------------+-----------+
//
// A Frame belongs to the [Reader] that read it and is valid until that Reader is
// read again; it is never written to while it is staged for sending. Who wants
// to keep it longer clones it. A stage that makes a new packet clears GSO
// and GBP.
//
// A Frame is 64 bytes and lies by value in its [Batch].
type Frame struct {
	buf      []byte
	off, end int32

	GSO    GSO    // zero, or how to cut this superframe
	Kind   Kind   // what Bytes starts with
	Drop   Reason // set by a reader that refuses the frame: it is counted and skipped
	VNI    VNI    // the network it is in; from a tunnel's reader, the tag on the wire
	From   Dest   // where it entered; a reader sets the peer half, the switch the port half
	Hash   uint32 // flow hash, 0 = not computed yet: outer source port, choice of queue and path
	Tunnel bool   // came in through a tunnel

	// Replicated is a copy of a flooded frame, as the tunnel's header or the multicast group
	// it was sent to says: all others have theirs from the peer that sent it.
	Replicated bool

	GBP GBP // its group; see there

	// Horizon is the split-horizon group of the attachment it came in on, while a gateway has
	// it: what goes back into that segment keeps to it. A copy that is injected has it too.
	Horizon uint8
}

// Over makes a Frame over buf[off:end] without copying. The frame borrows buf.
// It panics if the bounds do not lie in buf.
func Over(buf []byte, off, end int) Frame {
	_ = buf[off:end]
	return Frame{buf: buf, off: int32(off), end: int32(end)}
}

// reset makes f what Over returns, in place. Field by field: a literal would be put
// together on the stack from small stores and copied from there by wide loads, which have
// to wait for them (a tenth of a worker's time).
func (f *Frame) reset(buf []byte, off, end int32) {
	f.buf, f.off, f.end = buf, off, end
	f.GSO = GSO{}
	f.Kind, f.Drop, f.VNI, f.From, f.Hash, f.Tunnel, f.Replicated = 0, 0, 0, 0, 0, false, false
	f.GBP, f.Horizon = GBP{}, 0
}

// Make returns a Frame with a copy of packet, [Headroom] in front of it. It is
// the way to make a frame for Inject.
func Make(packet []byte) Frame {
	buf := make([]byte, Headroom+len(packet))
	copy(buf[Headroom:], packet)
	return Over(buf, Headroom, len(buf))
}

// Bytes returns the packet. The slice is borrowed, as the frame is; its capacity
// ends with the packet, so that appending to it never reaches a neighbour.
func (f *Frame) Bytes() []byte { return f.buf[f.off:f.end:f.end] }

// Len returns the number of bytes in the packet.
func (f *Frame) Len() int { return int(f.end - f.off) }

// SegLen returns the length of the longest frame that f is cut into: its own, unless
// it is a superframe. It is what MTUs are compared with.
func (f *Frame) SegLen() int {
	if f.GSO.Size == 0 {
		return f.Len()
	}
	return min(f.Len(), int(f.GSO.DataStart)-int(f.off)+int(f.GSO.Size))
}

// Origin returns what From stands for in tables. Frames of peers that have no number count as
// those of one more, which has the last number there is: they come from the tunnel all the same.
func (f *Frame) Origin() Dest {
	if f.Tunnel && f.From.Peer() == 0 {
		return f.From | 0xffff
	}
	return f.From
}

// Headroom returns how many bytes Push can add: where the packet begins in its buffer.
func (f *Frame) Headroom() int { return int(f.off) }

// Pull strips n bytes from the front and returns what is left. It panics if the
// packet is shorter than n, as a slice expression would.
func (f *Frame) Pull(n int) []byte {
	b := f.Bytes()[n:]
	f.off += int32(n)
	return b
}

// Push grows the packet n bytes into the headroom and returns it, or nil when
// the headroom is smaller than n; the frame is then unchanged. The new bytes hold
// whatever was there before.
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

// Extend grows the packet n bytes into the tailroom and returns it, or nil when
// the tailroom is smaller than n; the frame is then unchanged.
func (f *Frame) Extend(n int) []byte {
	if n < 0 || int(f.end)+n > len(f.buf) {
		return nil
	}
	f.end += int32(n)
	return f.Bytes()
}

// Clone returns a copy that owns its buffer, with [Headroom] in front and every
// field kept.
func (f *Frame) Clone() Frame {
	c := *f
	b := f.Bytes()
	c.buf = make([]byte, Headroom+len(b))
	copy(c.buf[Headroom:], b)
	c.off, c.end = Headroom, int32(len(c.buf))
	c.GSO = c.GSO.Moved(int(c.off - f.off))
	return c
}
