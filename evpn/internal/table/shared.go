package table

import (
	"container/list"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// shared has what peers have of something of which there is only so much, MACs of a segment or prefixes of a VRF, by the VTEPs that they
// are at. When there is no room, the VTEP with the most gives way to one with fewer.
type shared[T any] struct {
	size int
	of   map[route.Addr]*list.List // the last one first
	full bool                      // some are left out
}

// A slot is the place that a thing has in one.
type slot struct {
	vtep route.Addr
	at   *list.Element // nil = it has none
}

// room reports whether a VTEP may have one more within a limit. If another one has to go for that, it is evicted.
func (s *shared[T]) room(vtep route.Addr, limit int, evict func(T)) bool {
	if s.size < limit {
		return true
	}
	s.full = true
	var most *list.List
	for _, l := range s.of {
		if most == nil || l.Len() > most.Len() {
			most = l
		}
	}
	mine := 0
	if l := s.of[vtep]; l != nil {
		mine = l.Len()
	}
	if most == nil || mine+1 >= most.Len() {
		return false
	}
	evict(most.Front().Value.(T))
	return true
}

// relieve reports, once, that there is room again for some of those that were left out. Not each that goes has all imported anew.
func (s *shared[T]) relieve(limit int) bool {
	if !s.full || s.size > limit-max(limit/16, 1) {
		return false
	}
	s.full = false
	return true
}

// add gives a thing a slot.
func (s *shared[T]) add(vtep route.Addr, x T) slot {
	l := s.of[vtep]
	if l == nil {
		if s.of == nil {
			s.of = map[route.Addr]*list.List{}
		}
		l = list.New()
		s.of[vtep] = l
	}
	s.size++
	return slot{vtep, l.PushFront(x)}
}

// remove takes it away.
func (s *shared[T]) remove(x *slot) {
	if x.at == nil {
		return
	}
	s.size--
	l := s.of[x.vtep]
	if l.Remove(x.at); l.Len() == 0 {
		delete(s.of, x.vtep)
	}
	*x = slot{}
}

// settle has a thing be where its first path is, or nowhere without paths.
func (s *shared[T]) settle(x *slot, paths []*path, of T) {
	for _, p := range paths {
		if p.VTEP == x.vtep {
			return
		}
	}
	if s.remove(x); len(paths) > 0 {
		*x = s.add(paths[0].VTEP, of)
	}
}
