// Package delay is a queue of items that become due.
package delay

import (
	"slices"
	"time"
)

// A Queue orders items by the time they become due, and those of the same time by arrival, which a timer for each would not
// do. Its owner locks it and waits for the first item.
type Queue[T any] struct {
	items []*Item[T] // by Due
}

// An Item is an item that is or was in a Queue.
type Item[T any] struct {
	V   T
	Due time.Time
}

// Put adds v, due after a wait.
func (q *Queue[T]) Put(v T, wait time.Duration) *Item[T] {
	x := &Item[T]{v, time.Now().Add(wait)}
	at, _ := slices.BinarySearchFunc(q.items, x.Due, func(y *Item[T], due time.Time) int {
		if y.Due.After(due) {
			return 1
		}
		return -1 // behind others due at the same time
	})
	q.items = slices.Insert(q.items, at, x)
	return x
}

// Remove removes x before it is due. It reports whether x was still in the queue.
func (q *Queue[T]) Remove(x *Item[T]) bool {
	at := slices.Index(q.items, x)
	if at >= 0 {
		q.items = slices.Delete(q.items, at, at+1)
	}
	return at >= 0
}

// First returns the item that is due first, nil if there is none.
func (q *Queue[T]) First() *Item[T] {
	if len(q.items) == 0 {
		return nil
	}
	return q.items[0]
}

// Next removes and returns the first item if it is due, else nil.
func (q *Queue[T]) Next(now time.Time) *Item[T] {
	x := q.First()
	if x == nil || x.Due.After(now) {
		return nil
	}
	q.items[0] = nil
	q.items = q.items[1:]
	return x
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return len(q.items) }

// Clear removes and returns all items.
func (q *Queue[T]) Clear() []*Item[T] {
	all := q.items
	q.items = nil
	return all
}
