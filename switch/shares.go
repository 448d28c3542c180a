package vswitch

import (
	"sync"

	"github.com/vxswitch/vxswitch/frame"
)

// shares divides a queue among those that fill it: each may hold at most as many places as are free. One
// alone gets half of them, two a third each, and there is always room for another.
type shares struct {
	size int
	mu   sync.Mutex
	n    int
	held map[frame.Dest]int // by where the frame came in; 0 is the switch itself
}

// resize changes the number of places. Those that are held stay held.
func (s *shares) resize(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = size
}

// take reserves a place for d, if it may have another one.
func (s *shares) take(d frame.Dest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[d] >= s.size-s.n {
		return false
	}
	if s.held == nil {
		s.held = map[frame.Dest]int{}
	}
	s.held[d]++
	s.n++
	return true
}

// give returns places.
func (s *shares) give(ds ...frame.Dest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range ds {
		if s.held[d]--; s.held[d] == 0 {
			delete(s.held, d)
		}
		s.n--
	}
}
