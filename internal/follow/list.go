// Package follow tells of changes.
package follow

import (
	"slices"
	"sync"
)

// A List is functions that are called after each change. The zero List is empty. Its methods are safe for concurrent use.
type List[T any] struct {
	mu   sync.Mutex
	list []*func(T)
}

// Add has f called until remove is, which may be called again. f must not call the List.
func (l *List[T]) Add(f func(T)) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, &f)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = slices.DeleteFunc(l.list, func(g *func(T)) bool { return g == &f })
	}
}

// Tell calls the functions.
func (l *List[T]) Tell(x T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.list {
		(*f)(x)
	}
}
