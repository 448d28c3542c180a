package bgp

import (
	"net/netip"
	"sync"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/control"
)

// routes are those that a VRF has of other owners: how many next hops each has.
type routes struct {
	mu sync.Mutex
	n  map[netip.Prefix]int
}

// watchRoutes hears of routes of the VRF, until stop is called.
func (s *Speaker) watchRoutes() (stop func()) {
	vrf := s.cfg.VRF // never changes
	return s.node.Plane().WatchRoutes(func(owner string, add, del []control.Row) {
		if owner == s.owner {
			return
		}
		s.others.mu.Lock()
		s.others.note(vrf, add, 1)
		s.others.note(vrf, del, -1)
		s.others.mu.Unlock()
		s.wake()
	})
}

func (r *routes) note(vrf string, rows []control.Row, by int) {
	if r.n == nil {
		r.n = map[netip.Prefix]int{}
	}
	for _, x := range rows {
		if p, ok := x.(control.Prefix); ok && p.VRF == vrf {
			if r.n[p.Prefix] += by; r.n[p.Prefix] <= 0 {
				delete(r.n, p.Prefix)
			}
		}
	}
}

// wanted is what is to be announced, and our next hop for it, in place of which the engine has those for peers of other links.
func (s *Speaker) wanted() map[netip.Prefix]netip.Addr {
	want, ours := map[netip.Prefix]netip.Addr{}, s.cfg.NextHops()
	for _, p := range s.cfg.Announce {
		want[p] = engine.OfFamily(ours, p.Addr().Is4())
	}
	if len(s.cfg.Export) == 0 {
		return want
	}
	s.others.mu.Lock()
	defer s.others.mu.Unlock()
	for p := range s.others.n {
		if a, ok := match(s.cfg.Export, p); ok && a == Accept {
			if nextHop := engine.OfFamily(ours, p.Addr().Is4()); nextHop.IsValid() {
				want[p] = nextHop
			}
		}
	}
	return want
}

// announce tells peers what has changed of it.
func (s *Speaker) announce() {
	want := s.wanted()
	for p := range s.said {
		if _, ok := want[p]; ok {
			continue
		}
		if err := s.engine.Withdraw(p); err != nil {
			s.log.Warn("not withdrawn", "error", err)
			continue
		}
		delete(s.said, p)
	}
	for p, nextHop := range want {
		if s.said[p] == nextHop {
			continue
		}
		if err := s.engine.Announce(p, nextHop); err != nil {
			s.log.Warn("not announced", "error", err)
			continue
		}
		s.said[p] = nextHop
	}
}
