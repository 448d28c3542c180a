package datagrams

import (
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

const (
	MaxMessages = 64 // maximum of messages received at once
	MinWant     = 4  // minimum of messages that an Inbox makes room for

	// manyBytes is how much one call may receive before the next one makes room for less: the bytes should still be in the
	// processor's cache when they are sent, and should not wait long.
	manyBytes = 256 << 10
)

// An Inbox holds the messages that a Reader receives, each in a Block of its own, where its frames stay. Messages that do
// not fit in a batch are kept for the next one.
type Inbox struct {
	Rx   Rx
	Poll sys.BusyPoll

	Pool  *frame.Arenas // of the Read in progress
	Errno unix.Errno    // error of that Read

	N, At  int // messages received, and index of the next to deliver
	Want   int // messages to make room for; grows while all are used
	Blocks [MaxMessages]*frame.Block
	Msgs   [MaxMessages]sys.Mmsghdr
	Into   [MaxMessages]*unix.Iovec // piece of a message in its Block

	passed int // bytes of message At that Split has delivered
}

// Prepare gives each message a Block with room for that many bytes.
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

// RoomAt returns the offset of message i in its Block, at another cache line for each i. Blocks begin at page boundaries,
// and headers at the same offset of 64 pages would compete for a few cache lines.
func RoomAt(i int) int { return frame.Headroom + i%64*64 }

// Take receives what a socket has, without waiting. It returns false if there is nothing, and then holds no packet memory.
func (r *Inbox) Take(fd uintptr) bool {
	for {
		var errno unix.Errno
		switch r.N, errno = sys.Recvmmsg(fd, r.Msgs[:r.Want], unix.MSG_DONTWAIT); {
		case errno == unix.EINTR, errno == unix.EAGAIN && r.Poll.Again():
			continue // the kernel has not changed the headers
		case errno == unix.EAGAIN:
			r.Rest()
			return false
		}
		r.Poll.Found()
		r.Errno = errno
		return true
	}
}

// Rest releases packet memory while there is nothing to receive.
func (r *Inbox) Rest() {
	r.Release()
	r.Want = MinWant
}

// Release returns the Blocks with their messages.
func (r *Inbox) Release() {
	r.N, r.At, r.passed = 0, 0, 0
	for i, x := range r.Blocks {
		if x == nil {
			break
		}
		r.Pool.Free(x)
		r.Blocks[i], r.Into[i].Base = nil, nil // for the garbage collector
	}
}

// Stop ends a Read that has messages to deliver. They are kept until the Read after a pause, and dropped after Close.
func (r *Inbox) Stop(b *frame.Batch, err error) error {
	b.Release()
	if err != frame.ErrPaused {
		r.Release()
	}
	return err
}

// Adapt chooses the number of messages for the next call.
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

// Begun reports whether Split has delivered only a part of message At.
func (r *Inbox) Begun() bool { return r.passed > 0 }

// Split makes frames of bytes [from, to) of message At, of seg bytes each. It returns false if some are left for the next
// batch, and continues when called again. The frames of a message are in one batch unless there are more than
// [frame.MaxBatch]. Only the first frame has headroom, and only the last has room behind it, because the others have
// neighbours there.
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

// Drops extends a socket's 32-bit counter of dropped packets to 64 bits, if it is read at least once in four billion
// drops.
type Drops struct {
	Last  uint32
	Total uint64
}

// Seen notes the value of the socket's counter.
func (d *Drops) Seen(v uint32) {
	d.Total += uint64(v - d.Last)
	d.Last = v
}
