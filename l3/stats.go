package l3

import "github.com/vxswitch/vxswitch/internal/perworker"

// counts are one worker's counters of an interface.
type counts struct {
	routed4, routed6, echo, errors, limited, queued perworker.Counter
	_                                               [2]uint64 // a cache line each
}

// InterfaceStats counts packets from an interface.
type InterfaceStats struct {
	Routed4    uint64 `json:"routed4"`    // IPv4 packets
	Routed6    uint64 `json:"routed6"`    // IPv6 packets
	Echo       uint64 `json:"echo"`       // echo requests answered
	Errors     uint64 `json:"errors"`     // answered with an ICMP error
	Limited    uint64 `json:"limited"`    // not answered so, above a rate
	Queued     uint64 `json:"queued"`     // that waited for the MAC of their next hop
	Unresolved uint64 `json:"unresolved"` // dropped: no answer from their next hop, or no room to wait
	Waiting    int    `json:"waiting"`    // next hops on this interface that are being resolved
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
