package datagrams

import (
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

const (
	MaxMessages = 64 // most messages received at once
	MinWant     = 4  // fewest messages an Inbox makes room for

	// manyBytes is how much one call may bring before the next makes room for less: what
	// is received should still be in the processor's cache when it is sent, and who waits
	// for it should not wait long.
	manyBytes = 256 << 10
)

// An Inbox is where a Reader's messages are received: each in a Block of its own, where its
// frames then lie. Messages outlive a batch that does not take them all.
type Inbox struct {
	Rx   Rx
	Poll sys.BusyPoll

	Pool  *frame.Arenas // of the Read in progress
	Errno unix.Errno    // and how it ended

	N, At  int // messages received, and how far they have been handed over
	Want   int // messages to make room for: grows while all of it is used
	Blocks [MaxMessages]*frame.Block
	Msgs   [MaxMessages]sys.Mmsghdr
	Into   [MaxMessages]*unix.Iovec // the piece of a message that its Block is for

	passed int // bytes of message At that Split has handed over
}

// Prepare gives each message a Block, with room for that many bytes.
func (r *Inbox) Prepare(limit int) {
	for i := range r.Want {
		if r.Blocks[i] == nil {
			r.Blocks[i] = r.Pool.Block()
			r.Into[i].Base = &r.Blocks[i][RoomAt(i)]
			r.Into[i].SetLen(min(limit, frame.BlockSize-RoomAt(i)))
		}
		r.Msgs[i].Hdr.Flags = 0
	}
}

// RoomAt returns where in its Block message i is received: at another cache line in each.
// Blocks begin at page boundaries, and headers in the same place of 64 pages would all
// compete for a few lines of the cache.
func RoomAt(i int) int { return frame.Headroom + i%64*64 }

// Take receives what a socket has, without waiting. It reports false when that is nothing, and
// holds no packet memory then.
func (r *Inbox) Take(fd uintptr) bool {
	for {
		var errno unix.Errno
		switch r.N, errno = sys.Recvmmsg(fd, r.Msgs[:r.Want], unix.MSG_DONTWAIT); {
		case errno == unix.EINTR, errno == unix.EAGAIN && r.Poll.Again():
			continue // the kernel has not touched the headers
		case errno == unix.EAGAIN:
			r.Rest()
			return false
		}
		r.Poll.Found()
		r.Errno = errno
		return true
	}
}

// Rest holds no packet memory while there is nothing to receive.
func (r *Inbox) Rest() {
	r.Release()
	r.Want = MinWant
}

// Release gives the Blocks back, and with them the messages.
func (r *Inbox) Release() {
	r.N, r.At, r.passed = 0, 0, 0
	for i, x := range r.Blocks {
		if x == nil {
			break
		}
		r.Pool.Free(x)
		r.Blocks[i], r.Into[i].Base = nil, nil // or it would be kept from the garbage collector
	}
}

// Stop ends a Read that has messages to hand over: they are kept for the Read after a pause, and
// for none after Close.
func (r *Inbox) Stop(b *frame.Batch, err error) error {
	b.Release()
	if err != frame.ErrPaused {
		r.Release()
	}
	return err
}

// Adapt chooses how many messages the next call makes room for.
func (r *Inbox) Adapt() {
	bytes := 0
	for i := range r.Msgs[:r.N] {
		bytes += int(r.Msgs[i].Len)
	}
	switch {
	case bytes > manyBytes, r.N < r.Want/4:
		r.Want = max(r.Want/2, MinWant)
	case r.N == r.Want && bytes <= manyBytes/2:
		r.Want = min(2*r.Want, MaxMessages)
	}
}

// Begun reports whether Split has left some of message At.
func (r *Inbox) Begun() bool { return r.passed > 0 }

// Split makes frames of bytes [from, to) of message At, of seg bytes each. It reports false when some
// are left for the next batch, and goes on there when it is called again: the frames of a message are not spread over
// two unless there are more than [frame.MaxBatch]. The first frame of a message has headroom. In
// front of any other lies its neighbour, so it has none, and none but the last has room behind.
func (r *Inbox) Split(b *frame.Batch, from, to, seg int, outer frame.Outer) bool {
	from += r.passed
	first := r.passed == 0
	if left := to - from; seg < left {
		n := (left + seg - 1) / seg
		if n > frame.MaxBatch-len(b.Frames) && len(b.Frames) > 0 {
			return false
		}
		if first {
			r.Rx.Runs.Add(1)
			r.Rx.Segments.Add(uint64(n))
		}
	}
	x, start := r.Blocks[r.At][:], RoomAt(r.At)
	for {
		end := min(from+seg, to)
		lo, hi := start+from, start+end
		if first {
			lo = start - frame.Headroom
		}
		if end == to {
			hi = len(x)
		}
		if b.Borrow(x[lo:hi:hi], start+from-lo, start+end-lo) == nil {
			return false
		}
		b.Outer[len(b.Outer)-1] = outer
		if end == to {
			r.passed = 0
			return true
		}
		r.passed += end - from
		from, first = end, false
	}
}

// Drops extends a socket's 32-bit counter of dropped packets to 64 bits, for whoever looks at it at
// least once in four billion drops.
type Drops struct {
	Last  uint32
	Total uint64
}

// Seen notes what the socket's counter says.
func (d *Drops) Seen(v uint32) {
	d.Total += uint64(v - d.Last)
	d.Last = v
}
