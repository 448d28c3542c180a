package port

import "sync/atomic"

// captureBlock is what a packet's place in a captureRing is rounded up to.
const captureBlock = 256

// captureClosed, in head, says that nothing more is taken in.
const captureClosed = 1 << 63

// A captureRing is a bounded queue of packets from any number of goroutines to one.
// Nobody waits to put a packet in: a place is reserved by a compare-and-swap, filled,
// and marked ready. A packet that finds no place is refused.
//
//	       tail             head
//	+-------+----------------+---------+
//	|       | A . . | B | C .|         |  blocks; "." belongs to the packet before
//	+-------+----------------+---------+
//	         ready   not yet
//
// Blocks are counted from the start and never again from 0, so a note of an earlier
// round is never taken for one of this.
type captureRing struct {
	head   atomic.Uint64 // blocks ever reserved
	_      [56]byte
	tail   atomic.Uint64 // blocks ever given back
	_      [56]byte
	asleep atomic.Bool // the reader waits for wake, or is about to
	wake   chan struct{}
	notes  []captureNote // one a block; a packet's is that of its first
	buf    []byte
}

// captured is what is known of a packet in the ring.
type captured struct {
	time   int64 // ns since 1970
	source *captureSource
	length int32 // on the wire
	kept   int32 // in the ring
	kind   captureKind
}

type captureNote struct {
	ready atomic.Uint64 // number of the packet's first block + 1, when all else is written
	captured
}

func newCaptureRing(size int) *captureRing {
	n := size / captureBlock
	return &captureRing{
		wake:  make(chan struct{}, 1),
		notes: make([]captureNote, n),
		buf:   make([]byte, n*captureBlock),
	}
}

// blocks returns how many blocks n bytes take.
func blocks(n int32) uint64 { return uint64(max(1, (n+captureBlock-1)/captureBlock)) }

// put copies the parts, joined, in, as far as c.kept goes. It reports whether there
// was room.
func (r *captureRing) put(c *captured, parts [][]byte) bool {
	var pos uint64
	for n := blocks(c.kept); ; {
		// tail first: it never passes head.
		tail, head := r.tail.Load(), r.head.Load()
		if head&captureClosed != 0 || head+n-tail > uint64(len(r.notes)) {
			return false
		}
		if r.head.CompareAndSwap(head, head+n) {
			pos = head
			break
		}
	}
	room, at := int(c.kept), int(pos%uint64(len(r.notes)))*captureBlock
	for _, p := range parts {
		p = p[:min(len(p), room)]
		room -= len(p)
		k := copy(r.buf[at:], p)
		at += k
		if k < len(p) {
			at = copy(r.buf, p[k:])
		}
	}
	note := &r.notes[pos%uint64(len(r.notes))]
	note.captured = *c
	note.ready.Store(pos + 1)
	if r.asleep.Load() {
		r.poke()
	}
	return true
}

// poke wakes the reader. It does not wait.
func (r *captureRing) poke() {
	select {
	case r.wake <- struct{}{}:
	default: // somebody else did
	}
}

// first returns the note of the oldest packet, nil while it is not ready. over is
// true when the ring is closed and empty.
func (r *captureRing) first() (c *captured, over bool) {
	t := r.tail.Load()
	note := &r.notes[t%uint64(len(r.notes))]
	if note.ready.Load() == t+1 {
		return &note.captured, false
	}
	return nil, r.head.Load() == t|captureClosed
}

// wait returns when first may have news.
func (r *captureRing) wait() {
	r.asleep.Store(true)
	if c, over := r.first(); c == nil && !over {
		<-r.wake
	}
	r.asleep.Store(false)
}

// bytes returns what is kept of the oldest packet, joined in scratch if it goes round
// the end.
func (r *captureRing) bytes(c *captured, scratch []byte) (data, grown []byte) {
	at := int(r.tail.Load()%uint64(len(r.notes))) * captureBlock
	if end := at + int(c.kept); end <= len(r.buf) {
		return r.buf[at:end], scratch
	}
	scratch = append(scratch[:0], r.buf[at:]...)
	scratch = append(scratch, r.buf[:int(c.kept)-len(scratch)]...)
	return scratch, scratch
}

// drop gives the oldest packet's place back.
func (r *captureRing) drop(c *captured) { r.tail.Add(blocks(c.kept)) }

// close makes put refuse. What is in, or on the way in, can still be read.
func (r *captureRing) close() {
	r.head.Or(captureClosed)
	r.poke()
}
