package bgp

import (
	"sync"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// out is what we say: one table for all peers, and for each session the keys it has still to say. A key that changes before it
// is said is said once, as it is then, and one that comes and goes meanwhile not at all: of a peer that does not read, what waits is
// bounded by the routes that there are, and those that the peer has.
type out struct {
	mu     sync.Mutex
	routes map[route.Key]route.Route
	queues map[*queue]struct{}
}

type queue struct {
	keys map[route.Key]bool // whether the peer may have a route with the key
	most int                // the most keys there were since keys was made
	asks bool               // the peer wants all routes again
	owed int                // keys that it is told before it gets them
	wake chan struct{}      // there is something to do
}

func newQueue() queue { return queue{keys: make(map[route.Key]bool), wake: make(chan struct{}, 1)} }

// add queues a key that is not queued.
func (q *queue) add(k route.Key, told bool) {
	q.keys[k] = told
	q.most = max(q.most, len(q.keys))
}

// shrink gives memory back that is not needed any more: maps never do.
func (q *queue) shrink() {
	if len(q.keys) == 0 && q.most > batch {
		q.keys, q.most = make(map[route.Key]bool), 0
	}
}

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
	_, had := o.routes[k]
	if r != nil {
		o.routes[k] = *r
	} else if had {
		delete(o.routes, k)
	} else {
		return
	}
	for q := range o.queues {
		told, queued := q.keys[k]
		if !queued {
			q.add(k, had)
		} else if r == nil && !told {
			delete(q.keys, k)
		}
		q.poke()
	}
}

// join lets a queue have all routes, and what changes from now on.
func (o *out) join(q *queue) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.queues == nil {
		o.queues = make(map[*queue]struct{})
	}
	o.queues[q] = struct{}{}
	o.all(q, false)
}

func (o *out) leave(q *queue) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.queues, q)
}

// again has the peer told all routes again, after those that it is being told now: however often it asks meanwhile, once.
func (o *out) again(q *queue) {
	o.mu.Lock()
	defer o.mu.Unlock()
	q.asks = true
	q.poke()
}

// all queues all routes.
func (o *out) all(q *queue, told bool) {
	for k := range o.routes {
		if _, queued := q.keys[k]; !queued {
			q.add(k, told)
		}
	}
	q.owed = len(q.keys)
	q.poke()
}

// batch is how many keys are taken at once: those with equal attributes among them share messages.
const batch = 4096

// take appends to b messages that say some of what is queued, and reports whether there was anything.
func (o *out) take(q *queue, s *agreement, b []byte) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q.asks && (q.owed <= 0 || len(q.keys) == 0) {
		q.asks = false
		o.all(q, true)
	}
	groups := make(map[shared][]byte)
	var gone []byte
	n := 0
	for k := range q.keys {
		if n++; n > batch {
			break
		}
		delete(q.keys, k)
		q.owed--
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
	q.shrink()
	return b, n > 0
}

const maxNLRI = 60 // bytes: type, length and an IPv6 prefix
