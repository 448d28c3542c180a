// Package memory joins speakers in memory, without BGP: each hears what the others advertise, and sessions between two of them can be
// cut. It is for tests.
package memory

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/vxswitch/vxswitch/evpn/internal/engine"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// A Fabric joins engines. The zero value is empty.
type Fabric struct {
	mu      sync.Mutex
	engines []*Engine
	cut     map[[2]*Engine]bool
}

// An Engine is that of one speaker.
type Engine struct {
	f      *Fabric
	addr   netip.Addr
	routes map[route.Key]route.Route // under Fabric.mu
	queues map[*Engine]*session
	downs  []*Engine // peers whose sessions have ended, for run
	wake   chan struct{}
	h      engine.Handler
	called sync.Mutex // around calls of h
}

// A session is what an engine has still to say to another.
type session struct{ keys map[route.Key]bool }

var _ engine.Engine = (*Engine)(nil)

// Engine returns an engine of the fabric with an address.
func (f *Fabric) Engine(addr netip.Addr) *Engine {
	return &Engine{f: f, addr: addr, routes: map[route.Key]route.Route{}, queues: map[*Engine]*session{}, wake: make(chan struct{}, 1)}
}

// Run implements engine.Engine.
func (e *Engine) Run(ctx context.Context, h engine.Handler) error {
	e.h = h
	f := e.f
	f.mu.Lock()
	f.engines = append(f.engines, e)
	for _, o := range f.engines {
		f.open(e, o)
	}
	f.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			f.mu.Lock()
			for i, o := range f.engines {
				if o == e {
					f.engines = append(f.engines[:i:i], f.engines[i+1:]...)
					break
				}
			}
			for _, o := range f.engines {
				f.close(e, o)
			}
			f.mu.Unlock()
			return nil
		case <-e.wake:
			e.say()
		}
	}
}

// open opens a session between two engines, with mu held.
func (f *Fabric) open(a, b *Engine) {
	if a == b || f.cut[pair(a, b)] || a.queues[b] != nil {
		return
	}
	for _, x := range [][2]*Engine{{a, b}, {b, a}} {
		from, to := x[0], x[1]
		q := &session{map[route.Key]bool{}}
		for k := range from.routes {
			q.keys[k] = true
		}
		from.queues[to] = q
		from.poke()
	}
}

func (f *Fabric) close(a, b *Engine) {
	for _, x := range [][2]*Engine{{a, b}, {b, a}} {
		if from, to := x[0], x[1]; from.queues[to] != nil {
			delete(from.queues, to)
			from.downs = append(from.downs, to)
			from.poke()
		}
	}
}

func pair(a, b *Engine) [2]*Engine {
	if a.addr.Less(b.addr) {
		return [2]*Engine{a, b}
	}
	return [2]*Engine{b, a}
}

// Cut ends the session between two engines; Join lets them have one again.
func (f *Fabric) Cut(a, b *Engine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut == nil {
		f.cut = map[[2]*Engine]bool{}
	}
	f.cut[pair(a, b)] = true
	f.close(a, b)
}

// Join lets two engines have a session again.
func (f *Fabric) Join(a, b *Engine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.cut, pair(a, b))
	f.open(a, b)
}

func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Advertise implements engine.Engine.
func (e *Engine) Advertise(r route.Route) {
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	e.routes[r.Key] = r
	e.queue(r.Key)
}

// Withdraw implements engine.Engine.
func (e *Engine) Withdraw(k route.Key) {
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	delete(e.routes, k)
	e.queue(k)
}

// Between implements engine.Engine.
func (e *Engine) Between(f func()) {
	e.called.Lock()
	defer e.called.Unlock()
	f()
}

func (e *Engine) queue(k route.Key) {
	for _, q := range e.queues {
		q.keys[k] = true
	}
	e.poke()
}

// Routes returns what an engine advertises.
func (e *Engine) Routes() (list []route.Route) {
	e.f.mu.Lock()
	defer e.f.mu.Unlock()
	for _, r := range e.routes {
		list = append(list, r)
	}
	return list
}

// say tells the others what is queued, and the handler which sessions have ended.
func (e *Engine) say() {
	for again := true; again; {
		e.ended(nil)
		again = false
		e.f.mu.Lock()
		for to, q := range e.queues {
			if len(q.keys) == 0 {
				continue
			}
			keys := map[route.Key]*route.Route{}
			for k := range q.keys {
				keys[k] = nil
				if r, ok := e.routes[k]; ok {
					keys[k] = &r
				}
			}
			clear(q.keys)
			e.f.mu.Unlock()
			to.hear(e, q, keys)
			e.f.mu.Lock()
			again = true
			break
		}
		e.f.mu.Unlock()
	}
}

// hear passes on what another engine says in a session, unless that has ended.
func (e *Engine) hear(from *Engine, q *session, keys map[route.Key]*route.Route) {
	e.ended(from)
	e.called.Lock()
	defer e.called.Unlock()
	e.f.mu.Lock()
	is := from.queues[e] == q
	e.f.mu.Unlock()
	for k, r := range keys {
		switch {
		case !is:
		case r != nil:
			e.h.Learned(from.addr, r)
		default:
			e.h.Withdrawn(from.addr, &k)
		}
	}
}

// ended tells the handler which sessions have ended: that with one engine, or all.
func (e *Engine) ended(with *Engine) {
	e.called.Lock()
	defer e.called.Unlock()
	e.f.mu.Lock()
	var now, later []*Engine
	for _, o := range e.downs {
		if with == nil || o == with {
			now = append(now, o)
		} else {
			later = append(later, o)
		}
	}
	e.downs = later
	e.f.mu.Unlock()
	for _, o := range now {
		e.h.Down(o.addr, errCut)
	}
}

var errCut = errors.New("the session was cut")
