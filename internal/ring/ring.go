// Package ring is a bounded queue of packets between two goroutines of one
// process. The in-memory port and the in-memory underlay are made of it.
package ring

import (
	"context"
	"net"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
)

// A Ring holds packets, each with a value of type M, in the order they were put.
// Packets are copied in and out; the memory is reused. A full ring refuses: it
// never waits for its reader. It is safe for concurrent use.
type Ring[M any] struct {
	mu     sync.Mutex
	change sync.Cond // something a waiter may wait for
	slots  []slot[M]
	head   int
	n      int
	paused bool
	closed bool
}

type slot[M any] struct {
	buf  []byte
	meta M
}

// keep is the largest buffer a slot keeps for its next packet.
const keep = 4 << 10

// New returns a ring for up to size packets.
func New[M any](size int) *Ring[M] {
	r := &Ring[M]{slots: make([]slot[M], size)}
	r.change.L = &r.mu
	return r
}

// Put copies the parts, joined, to the end of the ring. It reports PortFull when
// there is no room, PortDown after Close, and NotDropped when it is in.
func (r *Ring[M]) Put(m M, parts ...[]byte) frame.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return frame.PortDown
	case r.n == len(r.slots):
		return frame.PortFull
	}
	s := &r.slots[(r.head+r.n)%len(r.slots)]
	s.buf, s.meta = s.buf[:0], m
	for _, p := range parts {
		s.buf = append(s.buf, p...)
	}
	r.n++
	r.change.Broadcast()
	return frame.NotDropped
}

// wait returns with the lock held and a packet in the ring, or with an error.
func (r *Ring[M]) wait(ctx context.Context) error {
	r.mu.Lock()
	for {
		switch {
		case r.closed:
			return net.ErrClosed
		case r.paused:
			return frame.ErrPaused
		case ctx != nil && ctx.Err() != nil:
			return ctx.Err()
		case r.n > 0:
			return nil
		}
		r.change.Wait()
	}
}

// next returns the oldest packet. It is valid until the lock is given up.
func (r *Ring[M]) next() *slot[M] {
	s := &r.slots[r.head]
	r.head = (r.head + 1) % len(r.slots)
	r.n--
	return s
}

func (s *slot[M]) reuse() {
	if cap(s.buf) > keep {
		s.buf = nil
	}
}

// Fill waits for packets and moves as many as fit into b, the way a frame.Reader
// does. It calls set, when that is not nil, with each frame's index in b.
func (r *Ring[M]) Fill(b *frame.Batch, set func(b *frame.Batch, i int, m M)) error {
	b.Reset()
	if r.idle() {
		b.Release()
	}
	err := r.wait(nil)
	defer r.mu.Unlock()
	if err != nil {
		return err
	}
	for r.n > 0 {
		s := &r.slots[r.head]
		f := b.New(len(s.buf))
		if f == nil {
			if len(b.Frames) > 0 {
				break
			}
			// Larger than an arena: hand it over as it is.
			f = b.Borrow(s.buf, 0, len(s.buf))
			s.buf = nil
		}
		copy(f.Bytes(), s.buf)
		if set != nil {
			set(b, len(b.Frames)-1, s.meta)
		}
		r.next().reuse()
	}
	return nil
}

func (r *Ring[M]) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n == 0
}

// Take waits for the oldest packet and returns a copy of it.
func (r *Ring[M]) Take(ctx context.Context) ([]byte, M, error) {
	stop := context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.change.Broadcast()
	})
	defer stop()
	err := r.wait(ctx)
	defer r.mu.Unlock()
	if err != nil {
		var zero M
		return nil, zero, err
	}
	s := r.next()
	p := append([]byte(nil), s.buf...)
	s.reuse()
	return p, s.meta, nil
}

// Len returns how many packets wait.
func (r *Ring[M]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// Pause makes Fill and Take return frame.ErrPaused until Pause(false).
func (r *Ring[M]) Pause(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = on
	r.change.Broadcast()
}

// Close makes every call return net.ErrClosed and forgets what waits.
func (r *Ring[M]) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.slots, r.n, r.head = nil, 0, 0
	r.change.Broadcast()
}
