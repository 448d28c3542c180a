package l3

import (
	"slices"
	"sync/atomic"
)

// A lane is what one worker has counted on an interface.
type lane struct {
	routed4, routed6, echo, errors, limited, queued counter
	_                                               [2]uint64 // a cache line each
}

// A counter of a lane is written by one worker; that of lane 0 by anybody.
type counter struct{ atomic.Uint64 }

func (c *counter) count(worker int32) {
	if worker == 0 {
		c.Add(1)
		return
	}
	c.Store(c.Load() + 1)
}

// lane returns that of a worker, whose numbers begin with 1; other goroutines have 0.
func (i *Interface) lane(worker int32) *lane {
	if l := *i.lanes.Load(); int(worker) < len(l) {
		return l[worker]
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	l := slices.Clone(*i.lanes.Load())
	for len(l) <= int(worker) {
		l = append(l, new(lane))
	}
	i.lanes.Store(&l)
	return l[worker]
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
	for _, l := range *i.lanes.Load() {
		s.Routed4 += l.routed4.Load()
		s.Routed6 += l.routed6.Load()
		s.Echo += l.echo.Load()
		s.Errors += l.errors.Load()
		s.Limited += l.limited.Load()
		s.Queued += l.queued.Load()
	}
	s.Unresolved = i.unresolved.Load()
	i.vrf.gateway.parked.mu.Lock()
	defer i.vrf.gateway.parked.mu.Unlock()
	s.Waiting = len(i.waiting)
	return s
}
