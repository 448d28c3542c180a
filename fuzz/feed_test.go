package fuzz

import (
	"net"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
)

// A packet is what a feed hands out.
type packet struct {
	data  []byte
	kind  frame.Kind
	outer frame.Outer
	gso   frame.GSO // what a device says of data, offsets from its start
	tight bool      // no room in front of it, as in a run that was split
}

// feed is a Reader that hands out what it is given, as batches. It is there from when the
// port is made; whether a switch reads it is the switch's business.
type feed struct {
	in     chan []packet
	closed chan struct{}
	once   sync.Once

	mu     sync.Mutex
	paused chan struct{} // closed while it is
}

func newFeed() *feed {
	return &feed{in: make(chan []packet), closed: make(chan struct{}), paused: make(chan struct{})}
}

func (f *feed) Read(b *frame.Batch) error {
	b.Reset()
	f.mu.Lock()
	paused := f.paused
	f.mu.Unlock()
	select { // first: a port that is not read any more takes nothing
	case <-f.closed:
		return net.ErrClosed
	case <-paused:
		return frame.ErrPaused
	default:
	}
	select {
	case <-f.closed:
		return net.ErrClosed
	case <-paused:
		return frame.ErrPaused
	case ps := <-f.in:
		for i := range ps {
			ps[i].put(b)
		}
		return nil
	}
}

func (p *packet) put(b *frame.Batch) {
	var x *frame.Frame
	if p.tight {
		x = b.Borrow(p.data, 0, len(p.data))
	} else if x = b.New(len(p.data)); x != nil {
		copy(x.Bytes(), p.data)
	}
	if x == nil {
		panic("a batch is full too early")
	}
	x.Kind = p.kind
	b.Outer[len(b.Outer)-1] = p.outer
	if p.gso != (frame.GSO{}) {
		x.GSO = p.gso
		x.GSO.CsumStart += uint16(x.Headroom())
		if x.Drop = gso.Check(x); x.Drop != frame.NotDropped {
			x.GSO = frame.GSO{}
		}
	}
}

func (f *feed) Close() error { f.once.Do(func() { close(f.closed) }); return nil }

func (f *feed) Pause() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.paused:
	default:
		close(f.paused)
	}
}

func (f *feed) Resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.paused:
		f.paused = make(chan struct{})
	default:
	}
}
