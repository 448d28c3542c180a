package capture

import "sync/atomic"

// blockLen is what a packet's place in a ring is rounded up to.
const blockLen = 256

// ringClosed, in head, says that nothing more is taken in.
const ringClosed = 1 << 63

// A ring is a bounded queue of packets from any number of goroutines to one.
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
type ring struct {
	head   atomic.Uint64 // blocks ever reserved
	_      [56]byte
	tail   atomic.Uint64 // blocks ever given back
	_      [56]byte
	asleep atomic.Bool // the reader waits for wake, or is about to
	wake   chan struct{}
	notes  []note // one a block; a packet's is that of its first
	buf    []byte
}

// A packet is what is known of a packet in the ring.
type packet struct {
	iface
	time   int64 // ns since 1970
	length int32 // on the wire
	kept   int32 // in the ring
}

type note struct {
	ready atomic.Uint64 // number of the packet's first block + 1, when all else is written
	packet
}

func newRing(size int) *ring {
	n := size / blockLen
	return &ring{
		wake:  make(chan struct{}, 1),
		notes: make([]note, n),
		buf:   make([]byte, n*blockLen),
	}
}

// blocks returns how many blocks n bytes take.
func blocks(n int32) uint64 { return uint64(max(1, (n+blockLen-1)/blockLen)) }

// put copies the parts, joined, in, as far as c.kept goes. It reports whether there
// was room.
func (r *ring) put(c *packet, parts [][]byte) bool {
	var pos uint64
	for n := blocks(c.kept); ; {
		// tail first: it never passes head.
		tail, head := r.tail.Load(), r.head.Load()
		if head&ringClosed != 0 || head+n-tail > uint64(len(r.notes)) {
			return false
		}
		if r.head.CompareAndSwap(head, head+n) {
			pos = head
			break
		}
	}
	room, at := int(c.kept), int(pos%uint64(len(r.notes)))*blockLen
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
	note.packet = *c
	note.ready.Store(pos + 1)
	if r.asleep.Load() {
		r.poke()
	}
	return true
}

// poke wakes the reader. It does not wait.
func (r *ring) poke() {
	select {
	case r.wake <- struct{}{}:
	default: // somebody else did
	}
}

// first returns the note of the oldest packet, nil while it is not ready. over is
// true when the ring is closed and empty.
func (r *ring) first() (c *packet, over bool) {
	t := r.tail.Load()
	note := &r.notes[t%uint64(len(r.notes))]
	if note.ready.Load() == t+1 {
		return &note.packet, false
	}
	return nil, r.head.Load() == t|ringClosed
}

// wait returns when first may have news.
func (r *ring) wait() {
	r.asleep.Store(true)
	if c, over := r.first(); c == nil && !over {
		<-r.wake
	}
	r.asleep.Store(false)
}

// bytes returns what is kept of the oldest packet, joined in scratch if it goes round
// the end.
func (r *ring) bytes(c *packet, scratch []byte) (data, grown []byte) {
	at := int(r.tail.Load()%uint64(len(r.notes))) * blockLen
	if end := at + int(c.kept); end <= len(r.buf) {
		return r.buf[at:end], scratch
	}
	scratch = append(scratch[:0], r.buf[at:]...)
	scratch = append(scratch, r.buf[:int(c.kept)-len(scratch)]...)
	return scratch, scratch
}

// drop gives the oldest packet's place back.
func (r *ring) drop(c *packet) { r.tail.Add(blocks(c.kept)) }

// close makes put refuse. What is in, or on the way in, can still be read.
func (r *ring) close() {
	r.head.Or(ringClosed)
	r.poke()
}

// isClosed reports whether close was called.
func (r *ring) isClosed() bool { return r.head.Load()&ringClosed != 0 }
