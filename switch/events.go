package vswitch

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A broker passes events to their readers.
type broker struct {
	mu     sync.Mutex
	subs   map[*Events]struct{}
	kinds  atomic.Uint64 // that any reader wants, as a set of bits
	limit  int           // of the queue of a reader that begins now
	lost   atomic.Uint64 // of all readers
	name   func(frame.Dest) string
	closed bool
}

// Events is one reader's queue of events. Its length is limited (Config.Events). If the reader is too
// slow, one frame.EventOverflow replaces what waits, except events about segments, ports and gateways, which come before
// it. The reader should then forget what it knows, and take [Switch.State] instead.
//
// A reader that gets Events first, then State, and then carries out the events, knows at any time what the tables
// contained at the last event.
type Events struct {
	broker *broker
	limit  int           // of queue
	kinds  uint64        // it wants
	queue  []frame.Event // under broker.mu
	ready  chan struct{}
	closed bool // under broker.mu
}

// Events returns a queue of the events from now on: those of some kinds, or with none given all. An EventOverflow
// comes in any case. Close it when done.
func (s *Switch) Events(kinds ...frame.EventKind) *Events {
	b := &s.events
	e := &Events{broker: b, ready: make(chan struct{}, 1)}
	for _, k := range kinds {
		e.kinds |= 1 << k
	}
	if len(kinds) == 0 {
		e.kinds = ^uint64(0)
	}
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
	b.want()
	e.limit = b.limit
	return e
}

// Notify queues an event for all readers of Events. It is for tables beside the switch, such as that of
// neighbours. It does not wait.
func (s *Switch) Notify(e frame.Event) { s.events.emit(e) }

func (b *broker) wants(k frame.EventKind) bool { return b.kinds.Load()&(1<<k) != 0 }

// emit queues an event for every reader. It does not wait.
func (b *broker) emit(ev frame.Event) {
	if !b.wants(ev.Kind) {
		return
	}
	if ev.Dest != 0 && ev.Name == "" {
		ev.Name = b.name(ev.Dest)
	}
	if ev.Old != 0 {
		ev.OldName = b.name(ev.Old)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ev.Time = time.Now()
	for e := range b.subs {
		if e.kinds&(1<<ev.Kind) == 0 {
			continue
		}
		if len(e.queue) >= e.limit {
			b.lost.Add(uint64(e.overflow(e.limit / 2)))
		}
		e.queue = append(e.queue, ev)
		e.wake()
	}
}

// overflow replaces what waits by one event, except for fewer than n events about segments, ports and gateways: senders
// of frames cannot cause many of those, as they can of peers, and must not be able to hide them. They stay before it: a
// reader that carried out an old EventDetached after it has read the tables would forget what is there by now. It returns
// how many events were lost.
func (e *Events) overflow(n int) (lost int) {
	q := e.queue[:0]
	for _, ev := range e.queue {
		switch ev.Kind {
		case frame.EventOverflow:
		case frame.EventSegmentUp, frame.EventSegmentDown, frame.EventAttached, frame.EventDetached,
			frame.EventPortUp, frame.EventPortDown, frame.EventPortHeld, frame.EventPortReleased,
			frame.EventLocalChanged, frame.EventGatewayUp, frame.EventGatewayDown:
			if len(q) < n-1 {
				q = append(q, ev)
				break
			}
			fallthrough
		default:
			lost++
		}
	}
	clear(e.queue[len(q):])
	e.queue = append(q, frame.Event{Kind: frame.EventOverflow, Time: time.Now()})
	return lost
}

// want notes which kinds of events readers want. b.mu is held.
func (b *broker) want() {
	var kinds uint64
	for e := range b.subs {
		kinds |= e.kinds
	}
	b.kinds.Store(kinds)
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

// NextAll waits for events like Next, and returns all there are.
func (e *Events) NextAll(ctx context.Context) ([]frame.Event, error) {
	first, err := e.Next(ctx)
	if err != nil {
		return nil, err
	}
	e.broker.mu.Lock()
	defer e.broker.mu.Unlock()
	all := append([]frame.Event{first}, e.queue...)
	e.queue = nil
	return all, nil
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
	b.want()
	e.closed, e.queue = true, nil
	e.wake()
}
