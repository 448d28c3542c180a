package table

import (
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// most is how many places a Flush passes. Whoever waits for the Table or for the rows of the switch waits for no more than these.
const most = 512

// A queue has the places that have changed, in the order in which they did.
type queue struct {
	in    map[place]struct{}
	pages [][]place // so that a long one grows without being copied
}

const pagePlaces = 1024

func (q *queue) add(x place) {
	if _, ok := q.in[x]; ok {
		return
	}
	q.in[x] = struct{}{}
	last := len(q.pages) - 1
	if last < 0 || len(q.pages[last]) == pagePlaces {
		q.pages = append(q.pages, nil)
		last++
	}
	q.pages[last] = append(q.pages[last], x)
}

// next takes the first place out of the list, nil if it is empty. It is in the queue until done is called.
func (q *queue) next() (x place) {
	if len(q.pages) == 0 {
		return nil
	}
	first := q.pages[0]
	x, q.pages[0] = first[0], first[1:]
	if len(first) == 1 {
		q.pages = q.pages[1:]
	}
	return x
}

func (q *queue) done(list []place) {
	for _, x := range list {
		delete(q.in, x)
	}
	if len(q.in) == 0 {
		*q = queue{in: map[place]struct{}{}} // not as large as the longest for ever
	}
}

// batch returns what a Flush passes, which may touch other places.
func (t *Table) batch(now time.Duration) (list []place) {
	for len(list) < most {
		x := t.dirty.next()
		if x == nil {
			break
		}
		t.readmit(now, x)
		switch x := x.(type) {
		case *host:
			x.hold(t)
			x.join(t)
		case *prefix:
			x.join(t)
		}
		list = append(list, x)
	}
	t.dirty.done(list)
	t.more = len(list) == most && len(t.dirty.in) > 0
	return list
}

// A saying is a route that the peers were told, and whose it is.
type saying struct {
	route.Route
	by place
}
