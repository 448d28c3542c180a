// Package shares keeps items of strangers by the place they come from, a port or a peer: when there is no room, places
// with few items displace those of places with many.
package shares

import (
	"container/list"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// A List holds items of some size. It has no limit of its own: call Room before Add. The zero List is empty.
type List[T any] struct {
	size int
	from map[frame.Dest]*share
	all  []*share // the same in no order, to walk through for each packet
}

// A share has the items of one place.
type share struct {
	from  frame.Dest
	items list.List // oldest first
	size  int
	at    int // in List.all
}

// An Item is an item of a List.
type Item[T any] struct {
	Value T
	Size  int // changed by Grow
	of    *share
	at    *list.Element
}

// Size returns the size of all items.
func (l *List[T]) Size() int { return l.size }

// Places returns the number of places with items.
func (l *List[T]) Places() int { return len(l.all) }

// Room makes room within limit for n more from a place, if it may; drop must remove an item.
func (l *List[T]) Room(from frame.Dest, n, limit int, drop func(T)) bool {
	for l.size+n > limit {
		x, ok := l.Oldest(from, n)
		if !ok {
			return false
		}
		drop(x)
	}
	return true
}

// Oldest returns the item to remove when there is no room for n more from a place: the oldest item of the place that has
// the most, or of its own if with n more it would have as much. ok is false if it has no items and no place has more than
// it would.
func (l *List[T]) Oldest(from frame.Dest, n int) (x T, ok bool) {
	mine, size := l.Of(from)
	x, most := l.Most()
	if size > 0 && size+n >= most {
		x = mine
	}
	return x, size > 0 || n < most
}

// Of returns the oldest item of a place, and the size of all its items.
func (l *List[T]) Of(from frame.Dest) (oldest T, size int) { return front[T](l.from[from]) }

// Most is Of for the place with the most, and among equals with the lowest number.
func (l *List[T]) Most() (oldest T, size int) {
	var most *share
	for _, s := range l.all {
		if most == nil || s.size > most.size || s.size == most.size && s.from < most.from {
			most = s
		}
	}
	return front[T](most)
}

func front[T any](s *share) (oldest T, size int) {
	if s == nil {
		return oldest, 0
	}
	return s.items.Front().Value.(*Item[T]).Value, s.size
}

// Add adds an item of size n.
func (l *List[T]) Add(from frame.Dest, value T, n int) *Item[T] {
	s := l.from[from]
	if s == nil {
		if l.from == nil {
			l.from = map[frame.Dest]*share{}
		}
		s = &share{from: from, at: len(l.all)}
		l.from[from] = s
		l.all = append(l.all, s)
	}
	x := &Item[T]{Value: value, of: s}
	x.at = s.items.PushBack(x)
	l.Grow(x, n)
	return x
}

// Grow changes the size of an item by n.
func (l *List[T]) Grow(x *Item[T], n int) {
	x.Size += n
	x.of.size += n
	l.size += n
}

// Renew makes an item the newest of its place.
func (l *List[T]) Renew(x *Item[T]) { x.of.items.MoveToBack(x.at) }

// Remove removes an item.
func (l *List[T]) Remove(x *Item[T]) {
	l.Grow(x, -x.Size)
	s := x.of
	if s.items.Remove(x.at); s.items.Len() == 0 {
		delete(l.from, s.from)
		last := len(l.all) - 1
		l.all[s.at], l.all[last].at = l.all[last], s.at
		l.all = slices.Delete(l.all, last, last+1)
	}
}

// All returns the items, those of the places with the least first, and of each place the oldest first.
func (l *List[T]) All() (items []T) {
	for _, s := range slices.SortedFunc(slices.Values(l.all), func(a, b *share) int { return a.size - b.size }) {
		for e := s.items.Front(); e != nil; e = e.Next() {
			items = append(items, e.Value.(*Item[T]).Value)
		}
	}
	return items
}
