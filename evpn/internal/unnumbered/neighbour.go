package unnumbered

import (
	"net/netip"
	"time"
)

// neighbour is the router of a link, the first that was heard. Another takes its place when it is silent or says that it ends, and has no session.
type neighbour struct {
	addr    netip.Addr
	until   time.Time  // when it is silent
	ended   bool       // it has said that it ends, or is nobody's default router
	other   netip.Addr // another router, that was heard last
	otherAt time.Time
}

// hear takes an advertisement, and reports whether the router is another one than before, or has begun again.
func (n *neighbour) hear(now time.Time, from netip.Addr, counts time.Duration, session bool) (changed bool) {
	if from != n.addr && n.kept(now, session) {
		n.other, n.otherAt = from, now
		return false
	}
	changed = from != n.addr || n.ended && counts > 0 && !session
	n.ended = counts == 0
	if n.addr, n.until = from, now; counts > 0 {
		n.until = now.Add(patience) // not the router's own lifetime, of up to 18 hours
	}
	if from == n.other {
		n.other = netip.Addr{}
	}
	return changed
}

// kept reports whether the router stays, whoever else is heard.
func (n *neighbour) kept(now time.Time, session bool) bool {
	return n.addr.IsValid() && (session || now.Before(n.until))
}

// busy reports whether an advertisement of another router is of no interest: one was noted within a second.
func (n *neighbour) busy(now time.Time, session bool) bool {
	return n.kept(now, session) && n.other.IsValid() && now.Sub(n.otherAt) < time.Second
}

// ignored returns another router on the link, none if there is none.
func (n *neighbour) ignored(now time.Time) netip.Addr {
	if now.Sub(n.otherAt) > lifetime {
		return netip.Addr{}
	}
	return n.other
}
