// Package perworker has counters without contention: each worker has its own.
package perworker

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Only its worker writes a Counter; any goroutine may write that of worker 0.
type Counter struct{ atomic.Uint64 }

// Count adds n.
func (c *Counter) Count(n uint64, worker int) {
	if worker == 0 {
		c.Add(n)
		return
	}
	c.Store(c.Load() + n)
}

// A Set has one T, such as a struct of Counters, for each worker, made on first use. They never move. The zero Set is empty.
type Set[T any] struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*T]
}

// Of returns the T of a worker. Workers count from 1; 0 is for other goroutines.
func (s *Set[T]) Of(worker int) *T {
	if p := s.list.Load(); p != nil && worker < len(*p) {
		return (*p)[worker]
	}
	return s.grow(worker)
}

func (s *Set[T]) grow(worker int) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.All())
	for len(list) <= worker {
		list = append(list, new(T))
	}
	s.list.Store(&list)
	return list[worker]
}

// All returns the existing Ts.
func (s *Set[T]) All() []*T {
	if p := s.list.Load(); p != nil {
		return *p
	}
	return nil
}
