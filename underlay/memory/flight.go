package memory

import (
	"container/heap"
	"slices"
	"time"
)

// A flight is a datagram under way: a copy, and when it is due. Or it is the error about
// one on its way back, with the start of it.
type flight struct {
	due   time.Time
	order uint64
	index int        // in the heap
	link  *linkState // that it is held back on
	way   *linkState
	m     meta
	data  []byte

	tell *Underlay // an error: whom it is for
	mtu  int       // 0: it is not about the MTU, nobody is there
}

// quoteLen is how much of a payload an error carries back.
const quoteLen = 128

// flights is a heap of what is under way, the next due first. One timer serves all
// of them, and equal times keep their order, which a timer for each would not.
type flights []*flight

func (q flights) Len() int { return len(q) }
func (q flights) Less(i, j int) bool {
	if c := q[i].due.Compare(q[j].due); c != 0 {
		return c < 0
	}
	return q[i].order < q[j].order
}
func (q flights) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *flights) Push(x any) {
	f := x.(*flight)
	f.index = len(*q)
	*q = append(*q, f)
}
func (q *flights) Pop() any {
	old := *q
	f := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return f
}

// fly sends a copy on its way; the network is locked.
func (n *Network) fly(st *linkState, m meta, parts [][]byte, wait time.Duration) *flight {
	return n.push(&flight{way: st, m: m, data: slices.Concat(parts...)}, wait)
}

// returnError sends an error about a datagram back to its sender; the network is locked.
func (n *Network) returnError(tell *Underlay, m meta, mtu int, parts [][]byte, wait time.Duration) {
	st := n.link(pair{m.src.Host(), m.dst.Host()})
	if st.way >= n.way {
		return
	}
	var quoted []byte
	for _, p := range parts {
		quoted = append(quoted, p[:min(len(p), quoteLen-len(quoted))]...)
	}
	n.reports++
	n.push(&flight{way: st, m: m, data: quoted, tell: tell, mtu: mtu}, wait)
}

func (n *Network) push(f *flight, wait time.Duration) *flight {
	f.way.way++
	n.order++
	f.due, f.order = time.Now().Add(wait), n.order
	heap.Push(&n.queue, f)
	if f.index == 0 { // otherwise the timer is right as it is
		n.schedule()
	}
	return f
}

// release lets a datagram that was held back go, now that another has overtaken
// it: right away, or after the same wait.
func (n *Network) release(f *flight, wait time.Duration) {
	f.link.held, f.link = nil, nil
	n.order++
	f.due, f.order = time.Now().Add(wait), n.order
	if wait > 0 {
		heap.Fix(&n.queue, f.index)
	} else {
		heap.Remove(&n.queue, f.index)
		f.way.way--
		n.deliver(f.m, f.data)
	}
	n.schedule()
}

// schedule sets the timer to what is due next, or stops it.
func (n *Network) schedule() {
	switch {
	case len(n.queue) == 0:
		if n.timer != nil {
			n.timer.Stop()
		}
	case n.timer == nil:
		n.timer = time.AfterFunc(time.Until(n.queue[0].due), n.arrive)
	default:
		n.timer.Reset(time.Until(n.queue[0].due))
	}
}

// arrive delivers what is due. Errors are told once the network is not locked any more.
func (n *Network) arrive() {
	for _, f := range n.landed() {
		if f.mtu == 0 {
			f.tell.reportLost(&f.m.dst, f.data)
		} else {
			f.tell.report(&f.m.dst, f.mtu, f.data)
		}
	}
}

// landed delivers the datagrams that are due and returns the errors.
func (n *Network) landed() (told []*flight) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for len(n.queue) > 0 && !n.queue[0].due.After(now) {
		f := heap.Pop(&n.queue).(*flight)
		f.way.way--
		if f.tell != nil {
			n.reports--
			told = append(told, f)
			continue
		}
		if f.link != nil {
			f.link.held = nil
		}
		n.deliver(f.m, f.data)
	}
	n.schedule()
	return told
}

// leave forgets a member. Without any left, nothing under way can arrive.
func (n *Network) leave(m *Underlay) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.members, m.at.Load().key)
	for group := range m.users {
		n.dropGroup(m, group)
	}
	if len(n.members) > 0 {
		return
	}
	n.stats.NoListener += uint64(len(n.queue) - n.reports)
	for _, f := range n.queue {
		f.way.way--
		if f.link != nil {
			f.link.held = nil
		}
	}
	n.queue, n.reports = nil, 0
	n.schedule()
}
