package l3

import (
	"net/netip"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/neighbour"
	"github.com/vxswitch/vxswitch/internal/shares"
)

// waiting is a next hop whose MAC is being resolved. Each port and peer has a share of those of an
// interface, by the packet that asked first.
type waiting struct {
	ip      netip.Addr
	packets neighbour.Wait[*queuedPacket]
	asker   netip.Addr // the source of the first packet
	asked   int
	gone    frame.Tick // 0, or when to ask again after no answer: until then packets are refused
	next    frame.Tick // when to ask again
	at      *shares.Item[*waiting]
}

// A rate counts the next hops that packets from one Dest asked for in a second.
type rate struct {
	second frame.Tick
	n      int
}

// questionRate limits that count, as a multiple of GatewayConfig.Waiting.
const questionRate = 4

// queuedPacket is a copy of a packet that waits, with its TTL as it came.
type queuedPacket struct {
	f  frame.Frame
	x  packet
	in *Interface
}

// A waitQueue holds the packets that wait at a gateway. Its lock covers Interface.waiting too.
type waitQueue struct {
	mu sync.Mutex
	neighbour.Queue[*queuedPacket]
}

// startResolving begins to wait for a next hop. It returns nil if from has reached the
// questionRate. The queue is locked.
func (i *Interface) startResolving(next, asker netip.Addr, from frame.Dest, now frame.Tick) *waiting {
	limit := i.vrf.gateway.limits.Load().Waiting
	r := i.rates[from]
	if int32(now-r.second) > 0 {
		r = rate{second: now}
	}
	if r.n >= questionRate*limit {
		return nil
	}
	r.n++
	i.rates[from] = r
	for len(i.waiting) >= limit { // more than once after the limit was lowered
		w, _ := i.asking.Oldest(from, 1)
		i.unresolved.Add(uint64(w.packets.Len()))
		i.stopResolving(w)
	}
	w := &waiting{ip: next, asker: asker, asked: 1, next: now + 1}
	w.at = i.asking.Add(from, w, 1)
	i.waiting[next] = w
	return w
}

// stopResolving ends the wait for a next hop, and returns its packets. The queue is locked.
func (i *Interface) stopResolving(w *waiting) []*queuedPacket {
	delete(i.waiting, w.ip)
	i.asking.Remove(w.at)
	return i.vrf.gateway.queue.Take(&w.packets)
}

// enqueue copies a packet into the queue of a next hop, if there is room. The queue is locked.
func (i *Interface) enqueue(w *waiting, x *packet, in *Interface, from frame.Dest) bool {
	l, limits, n := &i.vrf.gateway.queue, i.vrf.gateway.limits.Load(), x.f.Len()
	gone, ok := l.Room(&w.packets, from, n, limits.PerNeighbour, limits.Queued)
	i.unresolved.Add(uint64(gone))
	if ok {
		l.Add(&w.packets, from, &queuedPacket{x.f.Clone(), *x, in}, n)
	}
	return ok
}
