package datagrams

import (
	"fmt"
	"sync/atomic"
)

// MaxSets is the limit of sets in an underlay: underlay.MaxSets.
const MaxSets = 32

// Sets holds what [frame.Datagram].Set selects: an S for each of several different settings C. Number needs a lock, Get and
// All do not.
type Sets[C interface {
	comparable
	Check() error
}, S any] struct {
	settings []C
	sets     [MaxSets]atomic.Pointer[S]
}

// Get returns set n, nil if it does not exist.
func (t *Sets[C, S]) Get(n uint8) *S {
	if n >= MaxSets {
		return nil
	}
	return t.sets[n].Load()
}

// Own returns the settings of set 0, those of the underlay.
func (t *Sets[C, S]) Own() C { return t.settings[0] }

// Number returns the number of the set with these settings, and makes it if necessary.
func (t *Sets[C, S]) Number(c C, make func(C) *S) (uint8, error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	for i := range t.settings {
		if t.settings[i] == c {
			return uint8(i), nil
		}
	}
	n := len(t.settings)
	if n == MaxSets {
		return 0, fmt.Errorf("underlay: TxConfig: there are %d sets of transmit sockets already", MaxSets)
	}
	t.settings = append(t.settings, c)
	t.sets[n].Store(make(c))
	return uint8(n), nil
}

// All calls f for every set.
func (t *Sets[C, S]) All(f func(*S)) {
	for i := range t.sets {
		s := t.sets[i].Load()
		if s == nil {
			return
		}
		f(s)
	}
}

// Ports is a range of source ports, both ends included.
type Ports struct{ Lo, Hi uint16 }

// Dynamic is the dynamic port range (RFC 6335, section 6).
var Dynamic = Ports{49152, 65535}

// Len returns the number of ports.
func (p Ports) Len() int { return int(p.Hi) - int(p.Lo) + 1 }

// DefaultSlots and MaxSlots are the usual number of slots in a range, and the maximum; each slot gives one port.
const (
	DefaultSlots = 16
	MaxSlots     = 1024
)

// Slots returns the number of slots in the range, at most most.
func (p Ports) Slots(most int) int { return min(most, p.Len()) }

// Slot returns slot i of n.
func (p Ports) Slot(i, n int) Ports {
	return Ports{p.Lo + uint16(i*p.Len()/n), p.Lo + uint16((i+1)*p.Len()/n-1)}
}

// Middle returns the port in the middle of the range.
func (p Ports) Middle() uint16 { return p.Lo + (p.Hi-p.Lo)/2 }

// Label returns the IPv6 flow label of a flow (RFC 6438, section 3), never 0. It is in the half of those that nobody leases
// (net.ipv6.flowlabel_state_ranges).
func Label(flow uint16) uint32 { return 1<<19 | uint32(flow) }

// Index selects one of n for a flow.
func Index(flow uint16, n int) int { return int(flow) * n >> 16 }
