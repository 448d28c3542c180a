package neighbour

import (
	"slices"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/shares"
)

// Resolution of next hops: three requests, one a second, then the next hop counts as gone (RFC 1122, section 2.3.2; RFC
// 4861, section 7.2.2).
const (
	Tries  = 3
	Held   = 3       // packets that wait for one next hop
	Queued = 1 << 20 // bytes that wait in all
)

// A Queue holds packets that wait for the MACs of next hops, of any number of links. Packets to addresses without a host
// fill it, as in a scan, so each origin has a share, and a new packet replaces the oldest one (RFC 6583, section 7). It
// has no lock.
type Queue[P any] struct{ all shares.List[*packet[P]] }

// A Wait holds the packets that wait for one next hop.
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

// Len returns the number of packets. It takes no lock.
func (w *Wait[P]) Len() int { return int(w.n.Load()) }

// Bytes returns the number of bytes.
func (q *Queue[P]) Bytes() int { return q.all.Size() }

// Places returns the number of origins.
func (q *Queue[P]) Places() int { return q.all.Places() }

// Room makes room for a packet of size bytes from an origin, with at most each packets for one next hop and bytes in all.
// It returns how many other packets it has dropped. ok is false if the packet may not wait.
func (q *Queue[P]) Room(w *Wait[P], from frame.Dest, size, each, bytes int) (gone int, ok bool) {
	var other *packet[P] // to drop, of this next hop
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

// unfair returns the oldest packet of the origin with the most packets for this next hop, if that has more than from would
// have with one more.
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

// Add queues a packet after Room.
func (q *Queue[P]) Add(w *Wait[P], from frame.Dest, p P, size int) {
	x := &packet[P]{p: p, from: from, of: w}
	x.at = q.all.Add(from, x, size)
	w.set(append(w.packets, x))
}

// Take removes the packets for a next hop and returns them.
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
