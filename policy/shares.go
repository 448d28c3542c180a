package policy

import (
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// shares counts the flows of a table by where they were opened: of each port of the switch,
// and of each peer behind one. Counters are made when they are first asked for, and never
// move.
type shares struct {
	ports radix[share]
}

// A share is a port's.
type share struct {
	all   atomic.Int32 // its peers' included
	alone atomic.Int32 // of no peer
	peers atomic.Pointer[radix[atomic.Int32]]
}

// A radix is an array for every 16-bit number, of which only what is used takes memory.
type radix[T any] [256]atomic.Pointer[[256]T]

func (r *radix[T]) at(n uint16) *T {
	page := &r[n>>8]
	if page.Load() == nil {
		page.CompareAndSwap(nil, new([256]T))
	}
	return &page.Load()[n&0xff]
}

// of returns how many flows a port has, and those of one peer behind it, or of none.
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
