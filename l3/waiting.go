package l3

import (
	"container/list"
	"net/netip"
	"slices"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
)

// Whoever sends to addresses where nobody is fills what waits for next hops, as a scan does.
// So it has shares: of the next hops that are asked on one interface, and of the bytes that wait
// in all, by where the packets come from. A newcomer replaces what has been waiting longest
// (RFC 6583, section 7): at the place that has the most, if that has more than his would, else
// at his own.

// waiting is what is kept for a next hop that has been asked for its MAC.
type waiting struct {
	ip      netip.Addr
	packets []*parked
	asker   netip.Addr // the source of the first packet
	asked   int
	gone    frame.Tick // 0, or when it is asked again: until then nobody waits
	next    frame.Tick // when to ask again
	of      *asking
	at      *list.Element // in of.hops
}

// asking is the next hops that packets from one place have had asked for, on one interface.
type asking struct {
	hops   list.List // of *waiting, the one that was asked first in front
	busy   int       // in Interface.busy, while there are hops
	second frame.Tick
	n      int // questions in that second
}

// questionRate is how many next hops packets from one place may have asked for in a second, as
// often as may wait on the interface.
const questionRate = 4

// parked is a packet that waits: a copy, before its TTL was touched.
type parked struct {
	f    frame.Frame
	x    packet
	in   *Interface
	w    *waiting
	from frame.Dest
	at   *list.Element // in the lot
}

// A lot is all that waits at a gateway. Its lock is that of what waits on the interfaces, too.
type lot struct {
	mu sync.Mutex
	shares[*parked]
}

// open begins to wait for a next hop, or returns nil if too much has been asked for from there
// in this second. The lot is locked.
func (i *Interface) open(next netip.Addr, x *packet, from frame.Dest) *waiting {
	limit := i.vrf.gateway.limits.Load().Waiting
	a := i.asking[from]
	if a == nil {
		a = new(asking)
		i.asking[from] = a
	}
	if int32(x.tick-a.second) > 0 {
		a.second, a.n = x.tick, 0
	}
	if a.n >= questionRate*limit {
		return nil
	}
	a.n++
	for len(i.waiting) >= limit { // once, unless the limit was lowered
		most := a
		for _, b := range i.busy {
			if b.hops.Len() > most.hops.Len() {
				most = b
			}
		}
		if n := a.hops.Len(); n > 0 && n+1 >= most.hops.Len() {
			most = a
		}
		w := most.hops.Front().Value.(*waiting)
		i.unresolved.Add(uint64(len(w.packets)))
		i.forget(w)
	}
	w := &waiting{ip: next, asker: x.src(), asked: 1, next: x.tick + 1, of: a}
	if a.hops.Len() == 0 {
		a.busy = len(i.busy)
		i.busy = append(i.busy, a)
	}
	w.at = a.hops.PushBack(w)
	i.waiting[next] = w
	return w
}

// forget ends the wait for a next hop, and returns what waited. The lot is locked.
func (i *Interface) forget(w *waiting) []*parked {
	delete(i.waiting, w.ip)
	if a := w.of; a.hops.Remove(w.at) != nil && a.hops.Len() == 0 {
		last := len(i.busy) - 1
		i.busy[a.busy], i.busy[last].busy = i.busy[last], a.busy
		i.busy = slices.Delete(i.busy, last, last+1)
	}
	return i.vrf.gateway.leave(w)
}

// leave takes a next hop's packets out of the lot, which is locked.
func (g *Gateway) leave(w *waiting) (list []*parked) {
	list, w.packets = w.packets, nil
	for _, p := range list {
		g.parked.remove(p.from, p.at, p.f.Len())
	}
	return list
}

// park keeps a packet for a next hop, if it may. The lot is locked.
func (i *Interface) park(w *waiting, x *packet, in *Interface, from frame.Dest) bool {
	g := i.vrf.gateway
	l, limits, n := &g.parked, g.limits.Load(), x.f.Len()
	var other *parked // that has to go, of this next hop's
	if len(w.packets) >= limits.PerNeighbour {
		if other = w.unfair(from); other == nil {
			return false
		}
	}
	if n > limits.Queued {
		return false
	}
	if other != nil {
		i.evict(other)
	}
	if !l.room(from, n, limits.Queued, i.evict) {
		return false
	}
	p := &parked{f: x.f.Clone(), x: *x, in: in, w: w, from: from}
	w.packets = append(w.packets, p)
	p.at = l.add(from, p, n)
	return true
}

// unfair returns the oldest packet of the place that has the most of those that wait for a next
// hop, if that has more than another place would with one more.
func (w *waiting) unfair(from frame.Dest) (other *parked) {
	count := func(d frame.Dest) (n int) {
		for _, p := range w.packets {
			if p.from == d {
				n++
			}
		}
		return n
	}
	most := count(from) + 1
	for _, p := range w.packets {
		if n := count(p.from); n > most {
			other, most = p, n
		}
	}
	return other
}

// evict drops a packet that waits, on whatever interface. The lot is locked.
func (i *Interface) evict(p *parked) {
	i.vrf.gateway.parked.remove(p.from, p.at, p.f.Len())
	p.w.packets = slices.DeleteFunc(p.w.packets, func(q *parked) bool { return q == p })
	i.unresolved.Add(1)
}

// queued returns how many bytes wait.
func (g *Gateway) queued() int {
	g.parked.mu.Lock()
	defer g.parked.mu.Unlock()
	return g.parked.bytes
}
