package frame

import "sync/atomic"

// MaxBatch is the largest number of frames in a [Batch].
const MaxBatch = 64

// ArenaSize is the size of the arena of a [Batch] in bytes: room for 64 ordinary
// Ethernet frames, 27 jumbo frames, or three superframes of 64 KiB.
const ArenaSize = 256 << 10

// Outer is the outer header of a received packet. [Batch.Outer] has one for each
// frame that was read from an underlay.
type Outer struct {
	Src, Dst Endpoint
	If       uint32 // index of the receiving interface, 0 = unknown
	TOS, TTL uint8  // of the outer IP header
}

// A Batch has the frames of one [Reader.Read], in the order of their arrival, in an
// arena that is filled by bump allocation.
//
// A Reader calls Reset (or Release before it waits), then New or Borrow for each
// packet.
type Batch struct {
	Frames []Frame
	Outer  []Outer // parallel to Frames; only an underlay's reader sets it

	// The Readers of a tunnel set these. Gone counts how often peers have lost their numbers,
	// and Known is its value before the peer of the first frame was looked up. If they differ,
	// a number in From may belong to another peer now.
	Gone  *atomic.Uint64
	Known uint64

	// Clock is that of the switch, in Unix seconds, for its Readers. Without one they ask the system.
	Clock *atomic.Int64

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

// NewBatch returns an empty batch that takes its arena from pool with the first
// frame. With a nil pool the batch has an arena of its own.
func NewBatch(pool *Arenas) *Batch { return &Batch{pool: pool} }

// Reset removes the frames, which become invalid, and keeps the arena.
func (b *Batch) Reset() {
	b.used = 0
	b.Frames, b.Outer = b.Frames[:0], b.Outer[:0]
}

// Release removes the frames and returns the arena to its pool. A Reader calls it
// before it waits, so that an idle port has no packet memory.
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

// New appends a frame of n undefined bytes with [Headroom] in front. It returns nil
// if the batch is full. The pointer is valid until the batch is reset.
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

// carve takes memory of the arena, which must have it. The next piece begins a cache line.
func (b *Batch) carve(size int) []byte {
	buf := b.arena.buf[b.used : b.used+size : b.used+size]
	b.used = min((b.used+size+63)&^63, len(b.arena.buf))
	return buf
}

// Borrow appends a frame over buf[off:end], which the reader owns and does not touch
// before its next Read. It returns nil if the batch is full.
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

// Room makes room for n bytes in front of f, a frame of b. If necessary it moves f in the
// arena, with [Headroom] in front. It returns false, and leaves f unchanged, if the arena is
// full or n is more than Headroom.
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

// Shrink keeps the first n bytes of the last frame, which New made, and returns the
// rest of its memory to the arena. So a reader can make room for the longest packet
// before it knows the length. Shrink panics if the frame is shorter.
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

// Pool returns the free list of the batch: the one of NewBatch, or its own. Readers take
// their Blocks from it.
func (b *Batch) Pool() *Arenas {
	if b.pool == nil {
		b.pool = new(Arenas)
	}
	return b.pool
}

// Keep removes all but the first n frames, for a reader that made room for more packets
// than arrived. Their memory is free again after Reset.
func (b *Batch) Keep(n int) { b.Frames, b.Outer = b.Frames[:n], b.Outer[:n] }
