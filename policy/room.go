package policy

import "cmp"

// minIdle is how many ticks a flow that is not assured waits for its next packet before
// newer ones of the same port and peer may have its place.
const minIdle = 5

// A candidate is a flow that may have to make room: of the port and peer with most flows, of
// these what is least assured, of these what has been silent longest.
type candidate struct {
	flows int32 // of its port, and once more of its peer
	assurance int
	age   uint32
}

// before reports whether c makes room sooner than d.
func (c *candidate) before(d *candidate) bool {
	return cmp.Or(cmp.Compare(d.flows, c.flows), cmp.Compare(c.assurance, d.assurance), cmp.Compare(d.age, c.age)) < 0
}

// over reports whether who has some flows gives way to who has others: of what is assured only
// with a quarter more, or two that are alike would take from each other without end.
func (c *candidate) over(has, others int32) bool {
	if c.assurance == 2 {
		has -= has / 4
	}
	return has > others
}

// assurance says how assured a flow is: 0 unanswered, or over; 1 half open.
func (s state) assurance() int {
	switch {
	case s&stAnswered == 0, s&stClosing != 0:
		return 0
	case s&stAssured == 0:
		return 1
	}
	return 2
}

// room returns which flow makes room for a newcomer with a hash: in its two buckets of the
// newest array, unless any slot will do. It is one that has expired, evOpened; else evEvicted, or
// evFull. For who has few flows it looks further.
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

// victim is room in two buckets of each array. Whatever a port with more flows has may go, and
// whatever a peer with more behind the same port; of its own only what is not assured and has
// been silent for a while. Of ports with little more than the newcomer's, peers that have less
// are spared.
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
