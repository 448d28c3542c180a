package vswitch

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// A broker passes events to their readers.
type broker struct {
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
	broker *broker
	limit  int           // of queue
	queue  []frame.Event // under broker.mu
	ready  chan struct{}
	closed bool // under broker.mu
}

// Events returns a queue of the events from now on. Close it when done.
func (s *Switch) Events() *Events {
	b := &s.events
	e := &Events{broker: b, ready: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		e.closed = true
		e.wake()
		return e
	}
	if b.subs == nil {
		b.subs = map[*Events]struct{}{}
	}
	b.subs[e] = struct{}{}
	b.any.Store(true)
	e.limit = b.limit
	return e
}

// Notify queues an event for all readers of Events. It is for tables beside the switch, such as that of
// neighbours. It does not wait.
func (s *Switch) Notify(e frame.Event) { s.events.emit(e) }

// emit queues an event for every reader. It does not wait.
func (b *broker) emit(ev frame.Event) {
	if !b.any.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for e := range b.subs {
		if len(e.queue) >= e.limit {
			b.lost.Add(uint64(e.overflow(e.limit / 2)))
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
func (b *broker) resize(limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
}

func (b *broker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for e := range b.subs {
		e.closed = true
		e.wake()
	}
	clear(b.subs)
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
	e.broker.mu.Lock()
	defer e.broker.mu.Unlock()
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
	b := e.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.subs, e)
	b.any.Store(len(b.subs) > 0)
	e.closed, e.queue = true, nil
	e.wake()
}
