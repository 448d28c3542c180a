package vswitch

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// hub hands events to those who asked for them.
type hub struct {
	mu     sync.Mutex
	subs   map[*Events]struct{}
	any    atomic.Bool
	limit  int           // of what waits for one who asks now
	lost   atomic.Uint64 // of all readers
	closed bool
}

// Events is one reader's queue of what happens in a switch. It is bounded
// (Config.Events): when the reader is too slow, what waits is replaced by one
// frame.EventOverflow and the events about ports that came before, and the reader lists
// the tables again.
type Events struct {
	hub    *hub
	limit  int           // of queue
	queue  []frame.Event // under hub.mu
	ready  chan struct{}
	closed bool // under hub.mu
}

// Events returns a queue of what happens from now on. Close it when done.
func (s *Switch) Events() *Events {
	h := &s.events
	e := &Events{hub: h, ready: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		e.closed = true
		e.wake()
		return e
	}
	if h.subs == nil {
		h.subs = map[*Events]struct{}{}
	}
	h.subs[e] = struct{}{}
	h.any.Store(true)
	e.limit = h.limit
	return e
}

// Notify queues an event of a table that stands beside the switch, as that of neighbours
// does, with every reader of Events. It does not wait.
func (s *Switch) Notify(e frame.Event) { s.events.emit(e) }

// emit queues an event with every reader. It does not wait.
func (h *hub) emit(ev frame.Event) {
	if !h.any.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for e := range h.subs {
		if len(e.queue) >= e.limit {
			h.lost.Add(uint64(e.overflow(e.limit / 2)))
		}
		e.queue = append(e.queue, ev)
		e.wake()
	}
}

// overflow replaces what waits by one event, but for at most n about ports: senders of frames
// make few of those or none, and so cannot hide them. It returns how many were lost.
func (e *Events) overflow(n int) (lost int) {
	q := []frame.Event{{Kind: frame.EventOverflow}}
	for _, ev := range e.queue {
		switch ev.Kind {
		case frame.EventOverflow:
		case frame.EventPortUp, frame.EventPortDown, frame.EventPortHeld, frame.EventPortReleased:
			if len(q) < n {
				q = append(q, ev)
				break
			}
			fallthrough
		default:
			lost++
		}
	}
	e.queue = q
	return lost
}

// resize changes how much may wait for those who ask from now on.
func (h *hub) resize(limit int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limit = limit
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for e := range h.subs {
		e.closed = true
		e.wake()
	}
	clear(h.subs)
}

func (e *Events) wake() {
	select {
	case e.ready <- struct{}{}:
	default:
	}
}

// Next waits for the next event. After Close, or when the switch has closed and every
// event has been read, it returns net.ErrClosed. It is for one goroutine.
func (e *Events) Next(ctx context.Context) (frame.Event, error) {
	for {
		if ev, ok, err := e.poll(); ok || err != nil {
			return ev, err
		}
		select {
		case <-e.ready:
		case <-ctx.Done():
			return frame.Event{}, ctx.Err()
		}
	}
}

func (e *Events) poll() (frame.Event, bool, error) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	if len(e.queue) > 0 {
		ev := e.queue[0]
		e.queue = e.queue[1:]
		return ev, true, nil
	}
	if e.closed {
		return frame.Event{}, false, net.ErrClosed
	}
	return frame.Event{}, false, nil
}

// Close ends the queue; a waiting Next returns.
func (e *Events) Close() {
	h := e.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, e)
	h.any.Store(len(h.subs) > 0)
	e.closed, e.queue = true, nil
	e.wake()
}
