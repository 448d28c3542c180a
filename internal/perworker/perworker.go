// Package perworker counts without cores that fight over a cache line: each worker has counters
// of its own.
package perworker

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Counter is written by the worker it belongs to; that of worker 0 by anybody.
type Counter struct{ atomic.Uint64 }

// Count adds n.
func (c *Counter) Count(n uint64, worker int) {
	if worker == 0 {
		c.Add(n)
		return
	}
	c.Store(c.Load() + n)
}

// A Set is one T, such as a struct of Counters, for each worker. They never move, and are made when
// they are first asked for. The zero Set is empty.
type Set[T any] struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*T]
}

// Of returns that of a worker, whose numbers begin with 1; other goroutines have 0.
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

// All returns those there are.
func (s *Set[T]) All() []*T {
	if p := s.list.Load(); p != nil {
		return *p
	}
	return nil
}
