package neighbour

import (
	"slices"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/shares"
)

// How next hops are resolved: each is asked for three times, one a second, and then counts as gone
// (RFC 1122, section 2.3.2; RFC 4861, section 7.2.2).
const (
	Tries  = 3
	Held   = 3       // packets that wait for one
	Queued = 1 << 20 // bytes that wait in all
)

// A Queue is the packets that wait for the MACs of next hops, of any number of links. Whoever sends to
// addresses where nobody is fills it, as a scan does: so it has a share for each place that packets come
// from, and a newcomer replaces what has been waiting longest (RFC 6583, section 7). It has no lock.
type Queue[P any] struct{ all shares.List[*packet[P]] }

// A Wait is the packets that wait for one next hop.
type Wait[P any] struct {
	packets []*packet[P]
	n       atomic.Int32
}

type packet[P any] struct {
	p    P
	from frame.Dest
	of   *Wait[P]
	at   *shares.Item[*packet[P]]
}

// Len returns how many wait. It takes no lock.
func (w *Wait[P]) Len() int { return int(w.n.Load()) }

// Bytes returns how many bytes wait.
func (q *Queue[P]) Bytes() int { return q.all.Size() }

// Places returns from how many places.
func (q *Queue[P]) Places() int { return q.all.Places() }

// Room makes room for a packet of size bytes from a place, with at most each packets for one next hop, and
// bytes in all. It returns how many others had to go. ok is false if the packet may not wait.
func (q *Queue[P]) Room(w *Wait[P], from frame.Dest, size, each, bytes int) (gone int, ok bool) {
	var other *packet[P] // that has to go, of this next hop's
	if len(w.packets) >= each {
		if other = w.unfair(from); other == nil {
			return 0, false
		}
	}
	if size > bytes {
		return 0, false
	}
	drop := func(x *packet[P]) {
		q.all.Remove(x.at)
		x.of.set(slices.DeleteFunc(x.of.packets, func(y *packet[P]) bool { return y == x }))
		gone++
	}
	if other != nil {
		drop(other)
	}
	ok = q.all.Room(from, size, bytes, drop)
	return gone, ok
}

// unfair returns the oldest packet of the place that has the most of those that wait for a next
// hop, if that has more than another place would with one more.
func (w *Wait[P]) unfair(from frame.Dest) (other *packet[P]) {
	count := func(d frame.Dest) (n int) {
		for _, x := range w.packets {
			if x.from == d {
				n++
			}
		}
		return n
	}
	most := count(from) + 1
	for _, x := range w.packets {
		if n := count(x.from); n > most {
			other, most = x, n
		}
	}
	return other
}

// Add has a packet wait that there is room for.
func (q *Queue[P]) Add(w *Wait[P], from frame.Dest, p P, size int) {
	x := &packet[P]{p: p, from: from, of: w}
	x.at = q.all.Add(from, x, size)
	w.set(append(w.packets, x))
}

// Take takes out what waits for a next hop.
func (q *Queue[P]) Take(w *Wait[P]) (list []P) {
	for _, x := range w.packets {
		q.all.Remove(x.at)
		list = append(list, x.p)
	}
	w.set(nil)
	return list
}

func (w *Wait[P]) set(packets []*packet[P]) {
	w.packets = packets
	w.n.Store(int32(len(packets)))
}
