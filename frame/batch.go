package frame

import "sync/atomic"

// MaxBatch is the largest number of frames in a [Batch].
const MaxBatch = 64

// ArenaSize is how many bytes the frames of one [Batch] share: 64 frames of an
// ordinary Ethernet, or 27 jumbo frames, or three 64 KiB superframes.
const ArenaSize = 256 << 10

// Outer is what the underlay knows of a received packet; [Batch.Outer] holds one
// for each frame of a batch that was read from an underlay.
type Outer struct {
	Src, Dst Endpoint
	If       uint32 // index of the interface it came in on, 0 = unknown
	TOS, TTL uint8  // of the outer IP header
}

// A Batch is what one call of [Reader.Read] brings: frames in the order of their
// arrival, over an arena that is filled by bump allocation.
//
// A Reader fills it like this: Reset (or Release, before it waits), then New or
// Borrow once for each packet.
type Batch struct {
	Frames []Frame
	Outer  []Outer // parallel to Frames; only an underlay's reader sets it

	// Who reads for a tunnel sets these: Gone counts the times that peers have lost their
	// numbers, and Known is what it was before the first frame's peer was looked up. While they
	// differ a number in From may be another peer's by now.
	Gone  *atomic.Uint64
	Known uint64

	arena *arena
	used  int
	pool  *Arenas
}

type arena struct {
	frames [MaxBatch]Frame
	outer  [MaxBatch]Outer
	buf    []byte
}

func newArena() *arena { return &arena{buf: make([]byte, ArenaSize)} }

// NewBatch returns an empty batch that takes its arena from pool when the first
// frame is put into it. With a nil pool the batch makes an arena of its own and
// keeps it.
func NewBatch(pool *Arenas) *Batch { return &Batch{pool: pool} }

// Reset forgets the frames and keeps the arena. Frames of an earlier read are
// invalid from here on.
func (b *Batch) Reset() {
	b.used = 0
	b.Frames, b.Outer = b.Frames[:0], b.Outer[:0]
}

// Release forgets the frames and gives the arena back to its pool. A Reader calls
// it before it waits, so that an idle port holds no packet memory.
func (b *Batch) Release() {
	b.used = 0
	b.Frames, b.Outer = nil, nil
	if b.pool != nil && b.arena != nil {
		b.pool.put(b.arena)
		b.arena = nil
	}
}

func (b *Batch) take() {
	switch {
	case b.arena != nil:
	case b.pool != nil:
		b.arena = b.pool.get()
	default:
		b.arena = newArena()
	}
	b.Frames, b.Outer = b.arena.frames[:0], b.arena.outer[:0]
}

// New appends a frame of n bytes, [Headroom] in front, whose contents are
// whatever the arena held; it returns nil when the batch is full. The pointer is
// valid until the batch is reset.
func (b *Batch) New(n int) *Frame {
	if cap(b.Frames) == 0 {
		b.take()
	}
	k, size := len(b.Frames), Headroom+n
	if k == MaxBatch || n < 0 || size > len(b.arena.buf)-b.used {
		return nil
	}
	buf := b.carve(size)
	f := b.grow(k)
	f.reset(buf, Headroom, int32(size))
	return f
}

// carve takes memory of the arena, which has that much; what follows begins a cache line.
func (b *Batch) carve(size int) []byte {
	buf := b.arena.buf[b.used : b.used+size : b.used+size]
	b.used = min((b.used+size+63)&^63, len(b.arena.buf))
	return buf
}

// Borrow appends a frame over buf[off:end], memory that the reader owns and will
// not touch before its next Read; it returns nil when the batch is full.
func (b *Batch) Borrow(buf []byte, off, end int) *Frame {
	if cap(b.Frames) == 0 {
		b.take()
	}
	k := len(b.Frames)
	if k == MaxBatch {
		return nil
	}
	_ = buf[off:end]
	f := b.grow(k)
	f.reset(buf, int32(off), int32(end))
	return f
}

// Room sees to it that there are n bytes in front of f, a frame of b: it moves it to memory of
// the arena if need be, with [Headroom] in front. It reports false, and leaves f as it is,
// when the arena is full or n is more than Headroom.
func (b *Batch) Room(f *Frame, n int) bool {
	if f.Headroom() >= n {
		return true
	}
	size := Headroom + f.Len()
	if n > Headroom || b.arena == nil || size > len(b.arena.buf)-b.used {
		return false
	}
	buf := b.carve(size)
	copy(buf[Headroom:], f.Bytes())
	f.GSO = f.GSO.Moved(Headroom - f.Headroom())
	f.buf, f.off, f.end = buf, Headroom, int32(size)
	return true
}

// Shrink keeps the first n bytes of the last frame, which New made, and gives the
// rest of its memory back to the arena: a reader that does not know how long the
// next packet is asks for the longest. It panics if the frame is shorter.
func (b *Batch) Shrink(n int) {
	f := &b.Frames[len(b.Frames)-1]
	start := b.used - (len(f.buf)+63)&^63
	f.Trim(n)
	f.buf = f.buf[:f.end:f.end]
	b.used = start + (len(f.buf)+63)&^63
}

func (b *Batch) grow(k int) *Frame {
	b.Frames, b.Outer = b.Frames[:k+1], b.Outer[:k+1]
	return &b.Frames[k]
}

// Pool returns the free list the batch takes its memory from: the one it was made with,
// or one of its own. Readers that use Blocks take them there.
func (b *Batch) Pool() *Arenas {
	if b.pool == nil {
		b.pool = new(Arenas)
	}
	return b.pool
}

// Keep drops all but the first n frames. A reader that made room for more packets
// than arrived calls it; the arena space of the rest is free again only after
// Reset.
func (b *Batch) Keep(n int) { b.Frames, b.Outer = b.Frames[:n], b.Outer[:n] }
