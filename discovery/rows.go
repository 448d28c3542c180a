package discovery

import (
	"net/netip"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/discovery/internal/state"
)

// apply makes rows of what has changed, and lets others have hosts that are theirs now.
func (s *Speaker) apply(changes []state.Change) {
	for _, c := range changes {
		s.ledger.Set(c, s.row(c)...)
	}
}

// row returns the row of a host or of a segment's owner, none if there is to be none.
func (s *Speaker) row(c state.Change) []control.Row {
	if !s.here.segments[c.VNI] {
		return nil
	}
	if c.MAC.IsZero() {
		if c.Owner == s.cfg.Local || !s.state.Has(c.VNI, c.Owner) {
			return nil
		}
		return []control.Row{control.Flood{VNI: c.VNI, VTEP: netip.AddrPortFrom(c.Owner, 0), Tunnel: s.cfg.Tunnel}}
	}
	best, ok := s.state.Best(c.VNI, c.MAC)
	if !ok || best.Owner == s.cfg.Local {
		return nil
	}
	if s.here.hosts[c.Key] {
		s.lose(c.Key)
	}
	return []control.Row{control.MAC{VNI: c.VNI, MAC: c.MAC, VTEP: netip.AddrPortFrom(best.Owner, 0), Tunnel: s.cfg.Tunnel, Sticky: best.Kind == state.Static}}
}

// write passes to the node what has changed.
func (s *Speaker) write() {
	s.apply(s.state.Changes())
	if err := s.ledger.Flush(s.owner, s.node); err != nil {
		s.log.Warn("rows were refused", "error", err)
		s.counts.rowErr = err
	}
}

// fixed counts the rows by which other owners set a MAC on a port, since takeRows: those added, less those removed.
type fixed struct {
	mu   sync.Mutex
	rows map[state.Key]int
}

// watchRows hears of the rows of other owners, until stop is called.
func (s *Speaker) watchRows() (stop func()) {
	return s.node.Plane().Watch(func(owner string, add, del []control.Row) {
		if owner == s.owner {
			return
		}
		s.fixed.mu.Lock()
		n := s.fixed.note(add, 1) + s.fixed.note(del, -1)
		s.fixed.mu.Unlock()
		if n > 0 {
			s.loop.Wake()
		}
	})
}

func (f *fixed) note(rows []control.Row, by int) (noted int) {
	for _, r := range rows {
		if m, ok := r.(control.MAC); ok && m.Port != "" && m.MAC.IsHost() {
			if f.rows == nil {
				f.rows = map[state.Key]int{}
			}
			f.rows[state.Key{VNI: m.VNI, MAC: m.MAC}] += by
			noted++
		}
	}
	return noted
}

// takeRows takes over what fixed has counted: these hosts are here, and never move.
func (s *Speaker) takeRows(now time.Duration) {
	s.fixed.mu.Lock()
	rows := s.fixed.rows
	s.fixed.rows = nil
	s.fixed.mu.Unlock()
	for k, n := range rows {
		if s.here.fixed[k] += n; s.here.fixed[k] <= 0 {
			delete(s.here.fixed, k)
		}
		s.decide(now, k)
	}
}
