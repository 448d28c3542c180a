package evpn

import (
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/control"
)

// rows are changes that other owners have made, and takeRows has not carried out yet: how often a row was added, less how often it was
// removed.
type rows struct {
	mu     sync.Mutex
	hosts  map[control.MAC]int
	routes map[control.Prefix]int
}

// watchRows hears of the rows of other owners, until stop is called.
func (s *Speaker) watchRows() (stop func()) {
	note := func(owner string, add, del []control.Row, routes bool) {
		if owner == s.owner {
			return
		}
		s.rows.mu.Lock()
		for _, r := range add {
			s.rows.note(r, 1, routes)
		}
		for _, r := range del {
			s.rows.note(r, -1, routes)
		}
		s.rows.mu.Unlock()
		s.loop.Wake()
	}
	stop1 := s.node.Plane().Watch(func(owner string, add, del []control.Row) { note(owner, add, del, false) })
	stop2 := s.node.Plane().WatchRoutes(func(owner string, add, del []control.Row) { note(owner, add, del, true) })
	return func() {
		stop1()
		stop2()
	}
}

// note counts hosts on ports, and routes that VRFs have. A group of hosts on a port is nothing for peers.
func (w *rows) note(r control.Row, by int, routes bool) {
	switch r := r.(type) {
	case control.MAC:
		if !routes && r.Port != "" && r.MAC.IsHost() {
			if w.hosts == nil {
				w.hosts = map[control.MAC]int{}
			}
			w.hosts[r] += by
		}
	case control.Prefix:
		if routes {
			if w.routes == nil {
				w.routes = map[control.Prefix]int{}
			}
			w.routes[r] += by
		}
	}
}

// takeRows carries out what rows has: hosts that the configuration has on a port are here, and never move; routes are advertised.
// s.mu is held.
func (s *Speaker) takeRows(now time.Duration) {
	s.rows.mu.Lock()
	hosts, routes := s.rows.hosts, s.rows.routes
	s.rows.hosts, s.rows.routes = nil, nil
	s.rows.mu.Unlock()
	for r, n := range hosts {
		if n != 0 {
			s.table.Configured(now, r.VNI, r.MAC, r.IP, r.Port, r.Router, n)
		}
	}
	for r, n := range routes {
		if n != 0 {
			s.table.Static(r.VRF, r.Prefix, n)
		}
	}
}
