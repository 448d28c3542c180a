package l3

import (
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// laneCount is how many workers count without meeting each other: a power of two.
const laneCount = 8

// A lane is what some workers have counted on an interface.
type lane struct {
	routed4, routed6, echo, errors, limited, queued atomic.Uint64
	_                                               [2]uint64 // a cache line each
}

func (i *Interface) lane(at frame.At) *lane { return &i.count[at.Worker%laneCount] }

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
	for k := range i.count {
		l := &i.count[k]
		s.Routed4 += l.routed4.Load()
		s.Routed6 += l.routed6.Load()
		s.Echo += l.echo.Load()
		s.Errors += l.errors.Load()
		s.Limited += l.limited.Load()
		s.Queued += l.queued.Load()
	}
	s.Unresolved = i.unresolved.Load()
	i.mu.Lock()
	defer i.mu.Unlock()
	s.Waiting = len(i.waiting)
	return s
}
