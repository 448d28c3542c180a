package l3

import "github.com/vxswitch/vxswitch/internal/perworker"

// counts is what one worker has counted on an interface.
type counts struct {
	routed4, routed6, echo, errors, limited, queued perworker.Counter
	_                                               [2]uint64 // a cache line each
}

// InterfaceStats counts packets that came in on an interface.
type InterfaceStats struct {
	Routed4    uint64 `json:"routed4"`    // handed on, IPv4
	Routed6    uint64 `json:"routed6"`    // IPv6
	Echo       uint64 `json:"echo"`       // pings answered
	Errors     uint64 `json:"errors"`     // answered with an ICMP error
	Limited    uint64 `json:"limited"`    // would have been, beyond a rate
	Queued     uint64 `json:"queued"`     // waited for their next hop's MAC
	Unresolved uint64 `json:"unresolved"` // whose next hop did not answer
	Waiting    int    `json:"waiting"`    // next hops on this interface that are being asked
}

// Stats returns a snapshot.
func (i *Interface) Stats() (s InterfaceStats) {
	for _, c := range i.counts.All() {
		s.Routed4 += c.routed4.Load()
		s.Routed6 += c.routed6.Load()
		s.Echo += c.echo.Load()
		s.Errors += c.errors.Load()
		s.Limited += c.limited.Load()
		s.Queued += c.queued.Load()
	}
	s.Unresolved = i.unresolved.Load()
	i.vrf.gateway.queue.mu.Lock()
	defer i.vrf.gateway.queue.mu.Unlock()
	s.Waiting = len(i.waiting)
	return s
}
