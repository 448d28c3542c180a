package memory

import (
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/internal/delay"
)

// A flight is a datagram under way: a copy. Or it is the error about one on its way back, with the
// start of it.
type flight struct {
	link *linkState // that it is held back on
	way  *linkState
	m    meta
	data []byte

	tell *Underlay // an error: whom it is for
	mtu  int       // 0: it is not about the MTU, nobody is there
}

// quoteLen is how much of a payload an error carries back.
const quoteLen = 128

// fly sends a copy on its way; the network is locked.
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
	if n.queue.First() == x { // otherwise the timer is right as it is
		n.schedule()
	}
	return x
}

// release lets a datagram that was held back go, now that another has overtaken
// it: right away, or after the same wait.
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

// schedule sets the timer to what is due next, or stops it.
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

// arrive delivers what is due. Errors are told once the network is not locked any more.
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

// leave forgets a member. Without any left, nothing under way can arrive.
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
