package datagrams

import (
	"fmt"
	"sync/atomic"
)

// MaxSets is how many sets an underlay has: underlay.MaxSets.
const MaxSets = 32

// Sets is what [frame.Datagram].Set chooses from: an S for each of several settings C, of which no
// two are equal. Number is called under a lock, Get and All need none.
type Sets[C interface {
	comparable
	Check() error
}, S any] struct {
	settings []C
	sets     [MaxSets]atomic.Pointer[S]
}

// Get returns set n, nil if there is none.
func (t *Sets[C, S]) Get(n uint8) *S {
	if n >= MaxSets {
		return nil
	}
	return t.sets[n].Load()
}

// Own returns the settings of set 0, which are the underlay's own.
func (t *Sets[C, S]) Own() C { return t.settings[0] }

// Number returns the number of the set with these settings, which is made if it is not there.
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

// All calls f with every set.
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

// Dynamic is the dynamic ports of RFC 6335.
var Dynamic = Ports{49152, 65535}

// Len returns how many ports there are.
func (p Ports) Len() int { return int(p.Hi) - int(p.Lo) + 1 }

// MaxSlots is how many parts a range is divided into, of which each gives a port.
const MaxSlots = 16

// Slots returns how many parts the range is divided into.
func (p Ports) Slots() int { return min(MaxSlots, p.Len()) }

// Slot returns part i of n.
func (p Ports) Slot(i, n int) Ports {
	return Ports{p.Lo + uint16(i*p.Len()/n), p.Lo + uint16((i+1)*p.Len()/n-1)}
}

// Middle returns the port in the middle of the range.
func (p Ports) Middle() uint16 { return p.Lo + (p.Hi-p.Lo)/2 }

// Index picks one of n for a flow.
func Index(flow uint16, n int) int { return int(flow) * n >> 16 }
