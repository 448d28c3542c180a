package vswitch

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// A hub passes events to their readers.
type hub struct {
	mu     sync.Mutex
	subs   map[*Events]struct{}
	any    atomic.Bool
	limit  int           // of the queue of a reader that begins now
	lost   atomic.Uint64 // of all readers
	closed bool
}

// Events is one reader's queue of events. Its length is limited (Config.Events). If the reader is too
// slow, one frame.EventOverflow replaces what waits, except events about ports. The reader should then
// read the tables again.
type Events struct {
	hub    *hub
	limit  int           // of queue
	queue  []frame.Event // under hub.mu
	ready  chan struct{}
	closed bool // under hub.mu
}

// Events returns a queue of the events from now on. Close it when done.
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

// Notify queues an event for all readers of Events. It is for tables beside the switch, such as that of
// neighbours. It does not wait.
func (s *Switch) Notify(e frame.Event) { s.events.emit(e) }

// emit queues an event for every reader. It does not wait.
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

// overflow replaces what waits by one event, except at most n events about ports: senders of frames
// cannot cause many of those, and must not be able to hide them. It returns how many were lost.
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

// resize changes the limit for readers that begin from now on.
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

// Next waits for the next event. After Close, or after the last event of a closed switch, it returns
// net.ErrClosed. Only one goroutine may call it at a time.
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

// Close ends the queue. A waiting Next returns.
func (e *Events) Close() {
	h := e.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, e)
	h.any.Store(len(h.subs) > 0)
	e.closed, e.queue = true, nil
	e.wake()
}
