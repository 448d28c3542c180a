package evpn

import (
	"context"
	"slices"
	"time"
)

// carrierAge is how long the loss of a carrier stays unseen.
const carrierAge = 100 * time.Millisecond

// carriers follows the carriers of ports on Ethernet segments: a link without one is no way to the hosts.
func (s *Speaker) carriers(ctx context.Context) {
	tick := time.NewTicker(carrierAge)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		list := s.cfg.EthernetSegments
		s.mu.Unlock()
		for i := range list {
			s.carrier(list[i].Port, s.node.Carrier(list[i].Port))
		}
	}
}

// carrier notes whether a port has a carrier. The switch forgets the hosts of one that has lost it, so that they are reached by the other
// VTEPs on its Ethernet segment.
func (s *Speaker) carrier(port string, up bool) {
	s.do(func(now time.Duration) {
		p := s.seen.ports[port]
		if p == nil || p.dead == !up {
			return
		}
		p.dead = !up
		s.log.Info("the port of an Ethernet segment", "port", port, "carrier", up)
		if s.ethernet(now, port); p.dead {
			for _, d := range slices.Compact(slices.Sorted(slices.Values(p.dests))) {
				s.node.Switch().FlushPeer(d) // fails if it is gone
			}
		}
	})
}
