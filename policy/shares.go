package policy

import (
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// shares counts the flows of a table by the port and the peer that opened them. A counter is made
// on first use and never moves.
type shares struct {
	ports radix[share]
}

// A share has the counts of a port.
type share struct {
	all   atomic.Int32 // its peers' included
	alone atomic.Int32 // of no peer
	peers atomic.Pointer[radix[atomic.Int32]]
}

// A radix is an array indexed by 16-bit numbers. Only used pages take memory.
type radix[T any] [256]atomic.Pointer[[256]T]

func (r *radix[T]) at(n uint16) *T {
	page := &r[n>>8]
	if page.Load() == nil {
		page.CompareAndSwap(nil, new([256]T))
	}
	return &page.Load()[n&0xff]
}

// of returns the number of flows of d's port, and of its peer, or of none.
func (s *shares) of(d frame.Dest) (port, own *atomic.Int32) {
	p := s.ports.at(d.Port())
	if d.Peer() == 0 {
		return &p.all, &p.alone
	}
	if p.peers.Load() == nil {
		p.peers.CompareAndSwap(nil, new(radix[atomic.Int32]))
	}
	return &p.all, p.peers.Load().at(d.Peer())
}

func (s *shares) add(d frame.Dest, n int32) {
	port, own := s.of(d)
	port.Add(n)
	own.Add(n)
}
