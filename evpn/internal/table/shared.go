package table

import (
	"container/heap"
	"container/list"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// shared has what peers have of something of which there is only so much, MACs of a segment or prefixes of a VRF, by the VTEPs that they
// are at. When there is no room, the VTEP with the most gives way to one with fewer.
type shared[T any] struct {
	size   int
	of     map[route.Addr]*share
	ranked ranking // those of of
	full   bool    // some are left out
}

// A share is what a VTEP has, the last one first.
type share struct {
	list.List
	rank int // its index in the ranking
}

// A ranking is a heap of shares, of which the first one is the largest.
type ranking []*share

func (r ranking) Len() int           { return len(r) }
func (r ranking) Less(i, j int) bool { return r[i].Len() > r[j].Len() }
func (r ranking) Swap(i, j int)      { r[i], r[j] = r[j], r[i]; r[i].rank, r[j].rank = i, j }

// Push implements heap.Interface.
func (r *ranking) Push(x any) {
	x.(*share).rank = len(*r)
	*r = append(*r, x.(*share))
}

// Pop implements heap.Interface.
func (r *ranking) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	(*r)[last] = nil
	*r = (*r)[:last]
	return x
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
	mine := 0
	if l := s.of[vtep]; l != nil {
		mine = l.Len()
	}
	if len(s.ranked) == 0 || mine+1 >= s.ranked[0].Len() {
		return false
	}
	evict(s.ranked[0].Front().Value.(T))
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
			s.of = map[route.Addr]*share{}
		}
		l = &share{}
		s.of[vtep] = l
		heap.Push(&s.ranked, l)
	}
	s.size++
	at := slot{vtep, l.PushFront(x)}
	heap.Fix(&s.ranked, l.rank)
	return at
}

// remove takes it away.
func (s *shared[T]) remove(x *slot) {
	if x.at == nil {
		return
	}
	s.size--
	l := s.of[x.vtep]
	l.Remove(x.at)
	if heap.Fix(&s.ranked, l.rank); l.Len() == 0 {
		heap.Remove(&s.ranked, l.rank)
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
