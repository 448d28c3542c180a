package vswitch

import (
	"sync"

	"github.com/vxswitch/vxswitch/frame"
)

// shares divides the room of a queue among those who fill it: each holds at most as much as is
// free. One alone gets half, two a third each, and there is always room for another.
type shares struct {
	size int
	mu   sync.Mutex
	n    int
	held map[frame.Dest]int // by where the frame entered; 0 is the switch itself
}

// resize changes the room; what is held beyond it stays held.
func (s *shares) resize(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = size
}

// take reserves a place for d, if it may have one more.
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

// give takes places back.
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
