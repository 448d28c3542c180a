package l3

import (
	"container/list"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// shares are items of so many bytes that are kept for strangers, by where they come from. They have
// no limit of their own: who adds makes room first.
type shares[T any] struct {
	bytes int
	from  map[frame.Dest]*share
	all   []*share // the same, in no order: to be looked through with each packet
}

// A share is that of one place.
type share struct {
	items list.List // the oldest in front
	bytes int
	at    int // in shares.all
}

func newShares[T any]() shares[T] { return shares[T]{from: map[frame.Dest]*share{}} }

// room makes room within limit for n more bytes from a place, if it may: drop removes an item.
func (s *shares[T]) room(from frame.Dest, n, limit int, drop func(T)) bool {
	for s.bytes+n > limit {
		x, ok := s.oldest(from, n)
		if !ok {
			return false
		}
		drop(x)
	}
	return true
}

// oldest returns what is to go when n more bytes from a place find no room: the oldest item of
// the place that has the most, if that has more than the newcomer's would; else that of its own,
// if it has one.
func (s *shares[T]) oldest(from frame.Dest, n int) (x T, ok bool) {
	mine := s.from[from]
	most := mine
	for _, x := range s.all {
		if most == nil || x.bytes > most.bytes {
			most = x
		}
	}
	switch {
	case mine != nil && mine.bytes+n >= most.bytes:
		most = mine
	case most == nil || n >= most.bytes:
		return x, false
	}
	return most.items.Front().Value.(T), true
}

func (s *shares[T]) add(from frame.Dest, item T, n int) *list.Element {
	if s.from[from] == nil {
		s.from[from] = &share{at: len(s.all)}
		s.all = append(s.all, s.from[from])
	}
	s.grow(from, n)
	return s.from[from].items.PushBack(item)
}

// grow counts n more bytes of what is there, or less.
func (s *shares[T]) grow(from frame.Dest, n int) {
	s.from[from].bytes += n
	s.bytes += n
}

// remove takes out an item, with its n bytes.
func (s *shares[T]) remove(from frame.Dest, at *list.Element, n int) {
	s.grow(from, -n)
	if x := s.from[from]; x.items.Remove(at) != nil && x.items.Len() == 0 {
		delete(s.from, from)
		last := len(s.all) - 1
		s.all[x.at], s.all[last].at = s.all[last], x.at
		s.all = slices.Delete(s.all, last, last+1)
	}
}
