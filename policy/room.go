package policy

import "cmp"

// minIdle is how many ticks a flow that is not assured must be idle before a new flow of the same
// port and peer may evict it.
const minIdle = 5

// A candidate is a flow that may be evicted. The port and peer with the most flows go first, then
// the least assured, then the longest idle.
type candidate struct {
	flows     int32 // of its port, plus those of its peer
	assurance int
	age       uint32
}

// before reports whether to evict c before d.
func (c *candidate) before(d *candidate) bool {
	return cmp.Or(cmp.Compare(d.flows, c.flows), cmp.Compare(c.assurance, d.assurance), cmp.Compare(d.age, c.age)) < 0
}

// over reports whether c's owner, with has flows, gives way to one with others. An assured flow
// does only for a quarter more, or two equal owners would evict each other without end.
func (c *candidate) over(has, others int32) bool {
	if c.assurance == 2 {
		has -= has / 4
	}
	return has > others
}

// assurance returns 0 for an unanswered or closing flow, 1 for a half-open one, 2 if assured.
func (s state) assurance() int {
	switch {
	case s&stAnswered == 0, s&stClosing != 0:
		return 0
	case s&stAssured == 0:
		return 1
	}
	return 2
}

// room returns a flow to replace by a new one with hash h: in its two buckets of the newest array,
// or with any in any bucket. The event is evOpened for an expired flow, evEvicted, or evFull for
// none. For an owner with few flows it searches further.
func (t *flows) room(arrays []*array, h uint64, n *newFlow, l *limits, any bool) (x found, e event) {
	rounds := 1
	if _, own := t.shares.of(n.owner); !any {
		arrays = arrays[:1]
	} else if int(own.Load()) < t.max/4 {
		rounds = 4
	}
	for range rounds {
		if x, e = t.victim(arrays, h, n, l); e != evFull {
			break
		}
		h *= spread
	}
	return x, e
}

// spread is 2^64 divided by the golden ratio.
const spread = 0x9e3779b97f4a7c15

// victim is room in two buckets of each array. It may be a flow of a port with more flows, or of a
// peer with more behind the same port; one of the owner's own only if it is not assured and idle
// for minIdle. It spares peers with fewer flows on ports with only a few more.
func (t *flows) victim(arrays []*array, h uint64, n *newFlow, l *limits) (first found, e event) {
	port, own := t.shares.of(n.owner)
	all, mine := port.Load(), own.Load()
	var least candidate
	e = evFull
	for at := range 2 * len(arrays) {
		a := arrays[at/2]
		home := a.homes(h)[at%2]
		for i := home * bucket; i < (home+1)*bucket; i++ {
			w, x, ok := a.read(i)
			if !ok || x.mark&statusMask == statusBoth {
				continue
			}
			c := candidate{all + mine, x.state.assurance(), x.age(n.seen)}
			if c.age >= l[timeoutOf(protocolOf(w[4]), x.state)] {
				return x, evOpened
			}
			switch its := ownerOf(x.mark); {
			case its == n.owner:
				ok = c.assurance < 2 && c.age >= minIdle
			case its.Port() == n.owner.Port():
				_, peer := t.shares.of(its)
				theirs := peer.Load()
				c.flows, ok = all+theirs, c.over(theirs, mine)
			default:
				port, peer := t.shares.of(its)
				theirs, few := port.Load(), peer.Load() <= mine
				c.flows = theirs + peer.Load()
				ok = c.over(theirs, all) && !few || theirs/2 > all
			}
			if ok && (e == evFull || c.before(&least)) {
				first, least, e = x, c, evEvicted
			}
		}
	}
	return first, e
}
