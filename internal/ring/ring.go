// Package ring is a bounded queue of packets between two goroutines, for the in-memory port and the in-memory underlay.
package ring

import (
	"context"
	"net"
	"slices"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
)

// A Ring holds packets in the order of Put, each with a value of type M. It copies packets in and out. A full ring refuses
// packets and never waits for its reader. It is safe for concurrent use.
//
// Memory grows with the contents: the table of slots doubles up to the bound, and the garbage collector takes unused
// packet memory after two cycles. A steady flow allocates nothing.
type Ring[M any] struct {
	mu     sync.Mutex
	change sync.Cond    // the ring has changed
	slots  []*packet[M] // circular; its length grows up to size
	size   int
	head   int
	n      int
	paused bool
	closed bool

	spare sync.Pool // *packet[M]
}

type packet[M any] struct {
	buf  []byte
	meta M
}

const (
	// keep is the largest buffer that is reused.
	keep = 16 << 10
	// firstSlots is the initial length of a ring's table.
	firstSlots = 8
)

// New returns a ring for size packets, at least one.
func New[M any](size int) *Ring[M] {
	r := &Ring[M]{size: max(size, 1)}
	r.change.L = &r.mu
	return r
}

// Resize changes the number of packets there is room for, at least one. Packets above it stay in the ring.
func (r *Ring[M]) Resize(size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size = max(size, 1)
}

// Put appends a packet of these parts. It returns PortFull if there is no room, PortDown after Close, and else NotDropped.
func (r *Ring[M]) Put(m M, parts ...[]byte) frame.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return frame.PortDown
	case r.n >= r.size:
		return frame.PortFull
	case r.n == len(r.slots):
		r.grow()
	}
	p, _ := r.spare.Get().(*packet[M])
	if p == nil {
		p = new(packet[M])
	}
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	p.buf, p.meta = slices.Grow(p.buf[:0], size), m
	for _, part := range parts {
		p.buf = append(p.buf, part...)
	}
	r.slots[(r.head+r.n)%len(r.slots)] = p
	r.n++
	r.change.Broadcast()
	return frame.NotDropped
}

// grow doubles the table and puts the oldest packet first.
func (r *Ring[M]) grow() {
	slots := make([]*packet[M], min(max(2*len(r.slots), firstSlots), r.size))
	k := copy(slots, r.slots[r.head:])
	copy(slots[k:], r.slots[:r.head])
	r.slots, r.head = slots, 0
}

// wait returns with the lock held, and with a packet in the ring or an error.
func (r *Ring[M]) wait(ctx context.Context) error {
	r.mu.Lock()
	for {
		switch {
		case r.closed:
			return net.ErrClosed
		case r.paused:
			return frame.ErrPaused
		case ctx.Err() != nil:
			return ctx.Err()
		case r.n > 0:
			return nil
		}
		r.change.Wait()
	}
}

// next removes the oldest packet.
func (r *Ring[M]) next() *packet[M] {
	p := r.slots[r.head]
	r.slots[r.head] = nil
	r.head = (r.head + 1) % len(r.slots)
	r.n--
	return p
}

// reuse keeps a packet's memory for another one.
func (r *Ring[M]) reuse(p *packet[M]) {
	if cap(p.buf) <= keep {
		var zero M
		p.meta = zero
		r.spare.Put(p)
	}
}

// Fill waits for packets and moves as many as fit into b, like a frame.Reader. If set is not nil, it calls set with each
// frame's index in b.
func (r *Ring[M]) Fill(b *frame.Batch, set func(b *frame.Batch, i int, m M)) error {
	b.Reset()
	if r.idle() {
		b.Release()
	}
	err := r.wait(context.Background())
	defer r.mu.Unlock()
	if err != nil {
		b.Release()
		return err
	}
	for r.n > 0 {
		p := r.slots[r.head]
		f := b.New(len(p.buf))
		if f == nil {
			if len(b.Frames) > 0 {
				break
			}
			// Larger than an arena: use the packet's memory itself.
			b.Borrow(p.buf, 0, len(p.buf))
			p.buf = nil
		} else {
			copy(f.Bytes(), p.buf)
		}
		if set != nil {
			set(b, len(b.Frames)-1, p.meta)
		}
		r.reuse(r.next())
	}
	return nil
}

// idle reports whether a reader would have to wait.
func (r *Ring[M]) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n == 0
}

// Take waits for the oldest packet and returns a copy. If ctx is done first, it returns the error of ctx.
func (r *Ring[M]) Take(ctx context.Context) ([]byte, M, error) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.change.Broadcast()
		})
		defer stop()
	}
	err := r.wait(ctx)
	defer r.mu.Unlock()
	var m M
	if err != nil {
		return nil, m, err
	}
	p := r.next()
	buf, m := append([]byte(nil), p.buf...), p.meta
	r.reuse(p)
	return buf, m, nil
}

// Len returns the number of packets.
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

// Close makes every call return net.ErrClosed and drops the packets.
func (r *Ring[M]) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.slots, r.n, r.head = nil, 0, 0
	r.change.Broadcast()
}
