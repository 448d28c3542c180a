package l3

import (
	"container/list"

	"github.com/vxswitch/vxswitch/frame"
)

// shares are bytes that are kept for strangers, by where they come from. They have no limit of their
// own: who adds makes room first, as oldest says.
type shares struct {
	bytes int
	from  map[frame.Dest]*share
}

// A share is that of one place.
type share struct {
	items list.List // the oldest in front
	bytes int
}

func newShares() shares { return shares{from: map[frame.Dest]*share{}} }

// oldest returns what is to go when n more bytes from a place find no room: the oldest item of
// the place that has the most, if that has more than the newcomer's would; else that of its own.
// It is nil where that is nobody's.
func (s *shares) oldest(from frame.Dest, n int) any {
	mine := s.from[from]
	most := mine
	for _, x := range s.from {
		if most == nil || x.bytes > most.bytes {
			most = x
		}
	}
	switch {
	case mine != nil && mine.bytes+n >= most.bytes:
		most = mine
	case most == nil || n >= most.bytes:
		return nil
	}
	return most.items.Front().Value
}

func (s *shares) add(from frame.Dest, item any, n int) *list.Element {
	if s.from[from] == nil {
		s.from[from] = new(share)
	}
	s.grow(from, n)
	return s.from[from].items.PushBack(item)
}

// grow counts n more bytes of what is there, or less.
func (s *shares) grow(from frame.Dest, n int) {
	s.from[from].bytes += n
	s.bytes += n
}

// remove takes out an item, with its n bytes.
func (s *shares) remove(from frame.Dest, at *list.Element, n int) {
	s.grow(from, -n)
	if x := s.from[from]; x.items.Remove(at) != nil && x.items.Len() == 0 {
		delete(s.from, from)
	}
}
