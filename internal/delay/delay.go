// Package delay is a queue of things that wait until they are due.
package delay

import (
	"slices"
	"time"
)

// A Queue has items leave when they are due, those due at once in the order they came, which a timer
// for each would not. Whoever owns it locks it, and waits for the first.
type Queue[T any] struct {
	items []*Item[T] // by Due
}

// An Item is in a Queue, or was.
type Item[T any] struct {
	V   T
	Due time.Time
}

// Put has v leave after a wait.
func (q *Queue[T]) Put(v T, wait time.Duration) *Item[T] {
	x := &Item[T]{v, time.Now().Add(wait)}
	at, _ := slices.BinarySearchFunc(q.items, x.Due, func(y *Item[T], due time.Time) int {
		if y.Due.After(due) {
			return 1
		}
		return -1 // behind those due at the same time
	})
	q.items = slices.Insert(q.items, at, x)
	return x
}

// Remove takes x out before it is due. It reports whether x was still there.
func (q *Queue[T]) Remove(x *Item[T]) bool {
	at := slices.Index(q.items, x)
	if at >= 0 {
		q.items = slices.Delete(q.items, at, at+1)
	}
	return at >= 0
}

// First returns the item that is due next, nil if there is none.
func (q *Queue[T]) First() *Item[T] {
	if len(q.items) == 0 {
		return nil
	}
	return q.items[0]
}

// Next takes out the first item if it is due now, else it returns nil.
func (q *Queue[T]) Next(now time.Time) *Item[T] {
	x := q.First()
	if x == nil || x.Due.After(now) {
		return nil
	}
	q.items[0] = nil
	q.items = q.items[1:]
	return x
}

// Len returns how many items wait.
func (q *Queue[T]) Len() int { return len(q.items) }

// Clear forgets all items, and returns them.
func (q *Queue[T]) Clear() []*Item[T] {
	all := q.items
	q.items = nil
	return all
}
