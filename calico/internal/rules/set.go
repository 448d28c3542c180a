package rules

import (
	"maps"
	"slices"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
)

// A set is what of things somebody asks for. A thing that changes changes what is of it alone.
type set[T comparable] struct {
	of    func(*thing) []T
	order func(a, b T) int
	list  []T       // in order, each once
	more  map[T]int // that several things have: how many besides the first
	given bool      // a config has the list, which does not change any more
	used  bool      // by a config of this plan
}

func newSet[T comparable](things map[resource.Key]*thing, order func(a, b T) int, of func(*thing) []T) *set[T] {
	s := &set[T]{of: of, order: order, list: []T{}, more: map[T]int{}}
	for _, t := range things {
		s.list = append(s.list, of(t)...)
	}
	slices.SortFunc(s.list, order)
	for i := 1; i < len(s.list); i++ {
		if s.list[i] == s.list[i-1] {
			s.more[s.list[i]]++
		}
	}
	s.list = slices.Compact(s.list)
	return s
}

// replace has a thing be another one; nil is none.
func (s *set[T]) replace(was, is *thing) {
	var del, add []T
	if was != nil {
		del = s.of(was)
	}
	if is != nil {
		add = s.of(is)
	}
	for len(del) > 0 && len(add) > 0 && del[0] == add[0] {
		del, add = del[1:], add[1:]
	}
	for len(del) > 0 && len(add) > 0 && del[len(del)-1] == add[len(add)-1] {
		del, add = del[:len(del)-1], add[:len(add)-1]
	}
	for _, v := range add {
		s.add(v)
	}
	for _, v := range del {
		s.delete(v)
	}
}

func (s *set[T]) add(v T) {
	i, has := slices.BinarySearchFunc(s.list, v, s.order)
	if has {
		s.more[v]++
		return
	}
	s.own()
	s.list = slices.Insert(s.list, i, v)
}

func (s *set[T]) delete(v T) {
	if n := s.more[v]; n > 1 {
		s.more[v] = n - 1
		return
	} else if n == 1 {
		delete(s.more, v)
		return
	}
	s.own()
	if i, has := slices.BinarySearchFunc(s.list, v, s.order); has {
		s.list = slices.Delete(s.list, i, i+1)
	}
}

func (s *set[T]) own() {
	if s.given {
		s.list, s.given = slices.Clone(s.list), false
	}
}

// again returns the lists that a config names as they are now, nil if they are as they were.
func again[T comparable](lists map[string][]T, sets map[string]*set[T]) map[string][]T {
	var is map[string][]T
	for name := range lists {
		if s := sets[name]; !s.given {
			if is == nil {
				is = maps.Clone(lists)
			}
			is[name] = s.list
		}
	}
	return is
}

// settle ends a plan: lists that configs have stay as they are, and sets that no config has are forgotten.
func settle[T comparable](sets map[string]*set[T]) {
	for name, s := range sets {
		if !s.used {
			delete(sets, name)
		}
		s.given, s.used = true, false
	}
}
