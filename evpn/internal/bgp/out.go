package bgp

import (
	"sync"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// out is what we say: one table for all peers, and for each session the keys it has still to say. A key that changes before it
// is said is said once, as it is then: what waits is bounded by the number of keys.
type out struct {
	mu     sync.Mutex
	routes map[route.Key]route.Route
	queues map[*queue]struct{}
}

type queue struct {
	keys map[route.Key]struct{}
	wake chan struct{} // there is something to do
}

func newQueue() queue { return queue{make(map[route.Key]struct{}), make(chan struct{}, 1)} }

func (q *queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// put sets a route, or with nil removes it.
func (o *out) put(k route.Key, r *route.Route) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r != nil {
		o.routes[k] = *r
	} else if _, ok := o.routes[k]; ok {
		delete(o.routes, k)
	} else {
		return
	}
	for q := range o.queues {
		q.keys[k] = struct{}{}
		q.poke()
	}
}

// join lets a queue have what changes from now on.
func (o *out) join(q *queue) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.queues == nil {
		o.queues = make(map[*queue]struct{})
	}
	o.queues[q] = struct{}{}
}

func (o *out) leave(q *queue) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.queues, q)
}

// again queues all routes.
func (o *out) again(q *queue) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k := range o.routes {
		q.keys[k] = struct{}{}
	}
	q.poke()
}

// batch is how many keys are taken at once: those with equal attributes among them share messages.
const batch = 4096

// take appends to b messages that say some of what is queued, and reports whether there was anything.
func (o *out) take(q *queue, s *speaker, b []byte) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	groups := make(map[shared][]byte)
	var gone []byte
	n := 0
	for k := range q.keys {
		if n++; n > batch {
			break
		}
		delete(q.keys, k)
		r, ok := o.routes[k]
		if !ok {
			r.Key = k
			if len(gone)+maxNLRI > s.limit()-64 {
				b, gone = append(b, unreach(gone)...), gone[:0]
			}
			gone = appendNLRI(gone, &r)
			continue
		}
		a := sharedOf(&r)
		g := groups[a]
		if len(g)+maxNLRI > s.room(&a) {
			b, g = append(b, s.reach(&a, g)...), g[:0]
		}
		groups[a] = appendNLRI(g, &r)
	}
	if len(gone) > 0 {
		b = append(b, unreach(gone)...)
	}
	for a, g := range groups {
		b = append(b, s.reach(&a, g)...)
	}
	return b, n > 0
}

const maxNLRI = 60 // bytes: type, length and an IPv6 prefix
