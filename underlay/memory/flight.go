package memory

import (
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/internal/delay"
)

// A flight is a copy of a datagram in flight, or an error about one on its way back, with the start of the datagram.
type flight struct {
	link *linkState // that holds it back
	way  *linkState
	m    meta
	data []byte

	tell *Underlay // receiver of an error
	mtu  int       // of an error about the path MTU; 0: nobody listens there
}

// quoteLen is how much of a payload an error quotes.
const quoteLen = 128

// fly sends a copy; the network is locked.
func (n *Network) fly(st *linkState, m meta, parts [][]byte, wait time.Duration) *delay.Item[flight] {
	return n.push(flight{way: st, m: m, data: slices.Concat(parts...)}, wait)
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
	n.push(flight{way: st, m: m, data: quoted, tell: tell, mtu: mtu}, wait)
}

func (n *Network) push(f flight, wait time.Duration) *delay.Item[flight] {
	f.way.way++
	x := n.queue.Put(f, wait)
	if n.queue.First() == x { // otherwise the timer is right
		n.schedule()
	}
	return x
}

// release sends a datagram that was held back after another one has overtaken it: at once, or after the same delay.
func (n *Network) release(x *delay.Item[flight], wait time.Duration) {
	f := &x.V
	f.link.held, f.link = nil, nil
	n.queue.Remove(x)
	f.way.way--
	if wait > 0 {
		n.push(*f, wait)
	} else {
		n.deliver(f.m, f.data)
	}
	n.schedule()
}

// schedule sets the timer to the next due time, or stops it.
func (n *Network) schedule() {
	switch x := n.queue.First(); {
	case x == nil && n.timer != nil:
		n.timer.Stop()
	case x == nil:
	case n.timer == nil:
		n.timer = time.AfterFunc(time.Until(x.Due), n.arrive)
	default:
		n.timer.Reset(time.Until(x.Due))
	}
}

// arrive delivers the flights that are due. It reports errors after it has unlocked the network.
func (n *Network) arrive() {
	for _, x := range n.landed() {
		f := &x.V
		if f.mtu == 0 {
			f.tell.reportLost(&f.m.dst, f.data)
		} else {
			f.tell.report(&f.m.dst, f.mtu, f.data)
		}
	}
}

// landed delivers the datagrams that are due and returns the errors.
func (n *Network) landed() (told []*delay.Item[flight]) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for x := n.queue.Next(now); x != nil; x = n.queue.Next(now) {
		f := &x.V
		f.way.way--
		if f.tell != nil {
			n.reports--
			told = append(told, x)
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

// leave removes a member. Without members nothing in flight can arrive.
func (n *Network) leave(m *Underlay) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.members, m.at.key)
	for group := range m.users {
		n.dropGroup(m, group)
	}
	if len(n.members) > 0 {
		return
	}
	n.stats.NoListener += uint64(n.queue.Len() - n.reports)
	for _, x := range n.queue.Clear() {
		x.V.way.way--
		if x.V.link != nil {
			x.V.link.held = nil
		}
	}
	n.reports = 0
	n.schedule()
}
