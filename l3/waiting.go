package l3

import (
	"net/netip"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/neighbour"
	"github.com/vxswitch/vxswitch/internal/shares"
)

// waiting is what is kept for a next hop that has been asked for its MAC. Those of an interface have
// shares, too, by where the packet came from that it was asked for.
type waiting struct {
	ip      netip.Addr
	packets neighbour.Wait[*queuedPacket]
	asker   netip.Addr // the source of the first packet
	asked   int
	gone    frame.Tick // 0, or when it is asked again: until then nobody waits
	next    frame.Tick // when to ask again
	at      *shares.Item[*waiting]
}

// A rate is how many next hops packets from one place have had asked for in a second.
type rate struct {
	second frame.Tick
	n      int
}

// questionRate is how many next hops packets from one place may have asked for in a second, as
// often as may wait on the interface.
const questionRate = 4

// queuedPacket is a packet that waits: a copy, before its TTL was touched.
type queuedPacket struct {
	f  frame.Frame
	x  packet
	in *Interface
}

// A waitQueue is all that waits at a gateway. Its lock is that of what waits on the interfaces, too.
type waitQueue struct {
	mu sync.Mutex
	neighbour.Queue[*queuedPacket]
}

// startResolving begins to wait for a next hop, or returns nil if too much has been asked for from there
// in this second. The lot is locked.
func (i *Interface) startResolving(next netip.Addr, x *packet, from frame.Dest) *waiting {
	limit := i.vrf.gateway.limits.Load().Waiting
	r := i.rates[from]
	if int32(x.tick-r.second) > 0 {
		r = rate{second: x.tick}
	}
	if r.n >= questionRate*limit {
		return nil
	}
	r.n++
	i.rates[from] = r
	for len(i.waiting) >= limit { // once, unless the limit was lowered
		w, _ := i.asking.Oldest(from, 1)
		i.unresolved.Add(uint64(w.packets.Len()))
		i.stopResolving(w)
	}
	w := &waiting{ip: next, asker: x.src(), asked: 1, next: x.tick + 1}
	w.at = i.asking.Add(from, w, 1)
	i.waiting[next] = w
	return w
}

// stopResolving ends the wait for a next hop, and returns what waited. The lot is locked.
func (i *Interface) stopResolving(w *waiting) []*queuedPacket {
	delete(i.waiting, w.ip)
	i.asking.Remove(w.at)
	return i.vrf.gateway.queue.Take(&w.packets)
}

// enqueue keeps a packet for a next hop, if it may. The lot is locked.
func (i *Interface) enqueue(w *waiting, x *packet, in *Interface, from frame.Dest) bool {
	l, limits, n := &i.vrf.gateway.queue, i.vrf.gateway.limits.Load(), x.f.Len()
	gone, ok := l.Room(&w.packets, from, n, limits.PerNeighbour, limits.Queued)
	i.unresolved.Add(uint64(gone))
	if ok {
		l.Add(&w.packets, from, &queuedPacket{x.f.Clone(), *x, in}, n)
	}
	return ok
}

// queued returns how many bytes wait.
func (g *Gateway) queued() int {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	return g.queue.Bytes()
}
