package underlay

import (
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

const (
	rxMessages = 64 // most messages received at once
	minWant    = 4  // fewest messages a reader makes room for

	// manyBytes is how much one call may bring before the next makes room for less: what
	// is received should still be in the processor's cache when it is sent, and who waits
	// for it should not wait long.
	manyBytes = 256 << 10
)

// An inbox is where a reader's messages are received: each in a Block of its own, where its
// frames then lie. Messages outlive a batch that does not take them all.
type inbox struct {
	busy sys.BusyPoll

	pool  *frame.Arenas // of the Read in progress
	errno unix.Errno    // and how it ended

	n, at  int // messages received, and how far they have been handed over
	want   int // messages to make room for: grows while all of it is used
	blocks [rxMessages]*frame.Block
	msgs   [rxMessages]sys.Mmsghdr
	into   [rxMessages]*unix.Iovec // the piece of a message that its Block is for

	rx      datagrams.Rx
	dropped dropCounter
}

// prepare gives each message a Block, with room for that many bytes.
func (r *inbox) prepare(limit int) {
	for i := range r.want {
		if r.blocks[i] == nil {
			r.blocks[i] = r.pool.Block()
			r.into[i].Base = &r.blocks[i][roomAt(i)]
			r.into[i].SetLen(min(limit, frame.BlockSize-roomAt(i)))
		}
		r.msgs[i].Hdr.Flags = 0
	}
}

// roomAt returns where in its Block message i is received: at another cache line in each.
// Blocks begin at page boundaries, and headers in the same place of 64 pages would all
// compete for a few lines of the cache.
func roomAt(i int) int { return frame.Headroom + i%64*64 }

// take receives what a socket has, without waiting. It reports false when that is nothing, and
// holds no packet memory then.
func (r *inbox) take(fd uintptr) bool {
	for {
		var errno unix.Errno
		switch r.n, errno = sys.Recvmmsg(fd, r.msgs[:r.want], unix.MSG_DONTWAIT); {
		case errno == unix.EINTR, errno == unix.EAGAIN && r.busy.Again():
			continue // the kernel has not touched the headers
		case errno == unix.EAGAIN:
			r.release()
			r.want = minWant
			return false
		}
		r.busy.Found()
		r.errno = errno
		return true
	}
}

// release gives the Blocks back, and with them the messages.
func (r *inbox) release() {
	r.n, r.at = 0, 0
	for i, x := range r.blocks {
		if x == nil {
			break
		}
		r.pool.Free(x)
		r.blocks[i], r.into[i].Base = nil, nil // or it would be kept from the garbage collector
	}
}

// stop ends a Read that has messages to hand over: they are kept for the Read after a pause, and
// for none after Close.
func (r *inbox) stop(b *frame.Batch, err error) error {
	b.Release()
	if err != frame.ErrPaused {
		r.release()
	}
	return err
}

// backOff waits after many errors in a row, 1 ms at first and 100 ms at most, so
// that an error that stays does not keep a processor busy. It notices Close.
func backOff(failed int, done <-chan struct{}) error {
	const free = 8
	if failed < free {
		return nil
	}
	t := time.NewTimer(min(time.Millisecond<<min(failed-free, 7), 100*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-done:
		return net.ErrClosed
	}
}

// adapt chooses how many messages the next call makes room for.
func (r *inbox) adapt() {
	bytes := 0
	for i := range r.msgs[:r.n] {
		bytes += int(r.msgs[i].Len)
	}
	switch {
	case bytes > manyBytes, r.n < r.want/4:
		r.want = max(r.want/2, minWant)
	case r.n == r.want && bytes <= manyBytes/2:
		r.want = min(2*r.want, rxMessages)
	}
}
