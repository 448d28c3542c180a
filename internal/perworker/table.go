package perworker

import (
	"sync"
	"sync/atomic"
)

// A Table has a T, such as a struct of atomic counters, for each of many small numbers. One worker owns it, and any goroutine may
// read it, and even write it if the T allows that. It is made as it is used, in pages that never move. The zero Table is empty.
type Table[T any] struct {
	pages atomic.Pointer[[]*page[T]]
	mu    sync.Mutex // adding to pages
}

const pageLen = 64

type page[T any] struct {
	of [pageLen]T
	_  [64]byte // no cache line of the last T is one of the next thing in memory
}

// Of returns the T of a number, and makes it if there is none.
func (t *Table[T]) Of(num uint32) *T {
	if x := t.At(num); x != nil {
		return x
	}
	return t.grow(num)
}

// At returns the T of a number, or nil if it was not made.
func (t *Table[T]) At(num uint32) *T {
	if p := t.pages.Load(); p != nil && num/pageLen < uint32(len(*p)) {
		if x := (*p)[num/pageLen]; x != nil {
			return &x.of[num%pageLen]
		}
	}
	return nil
}

func (t *Table[T]) grow(num uint32) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.At(num); x != nil {
		return x
	}
	var old []*page[T]
	if p := t.pages.Load(); p != nil {
		old = *p
	}
	pages := make([]*page[T], max(len(old), int(num/pageLen)+1))
	copy(pages, old)
	pages[num/pageLen] = new(page[T])
	t.pages.Store(&pages)
	return &pages[num/pageLen].of[num%pageLen]
}

// All iterates over what was made, and over numbers beside that.
func (t *Table[T]) All(yield func(uint32, *T) bool) {
	p := t.pages.Load()
	if p == nil {
		return
	}
	for i, x := range *p {
		if x == nil {
			continue
		}
		for j := range x.of {
			if !yield(uint32(i*pageLen+j), &x.of[j]) {
				return
			}
		}
	}
}
