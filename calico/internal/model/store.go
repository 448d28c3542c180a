// Package model says what the resources of Calico mean for one node: its peers in BGP, its pools, and routes to the blocks of others.
// It knows no etcd and no clock: a [Store] has resources, and [Compile] makes a [Plan] of them.
package model

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
)

// A Problem is what of the datastore the node does not do, and why.
type Problem struct {
	Resource string // such as ippools/default
	Why      string
}

// String returns it in one line.
func (p Problem) String() string { return p.Resource + ": " + p.Why }

// NotDone is what of the datastore a plan does not do.
type NotDone struct {
	Problems []Problem
	More     int // problems
}

// MaxProblems is how many problems of a plan are named.
const MaxProblems = 1000

// Note adds a problem.
func (n *NotDone) Note(of string, format string, args ...any) {
	if len(n.Problems) >= MaxProblems {
		n.More++
		return
	}
	n.Problems = append(n.Problems, Problem{of, fmt.Sprintf(format, args...)})
}

// A Store has what is in the datastore. The zero value is empty. It is not safe for concurrent use.
type Store struct {
	of      [resource.Kinds]map[string]entry
	strange map[string]error // keys that are none
	left    [resource.Kinds]int
	changed []resource.Key // of policy
	more    bool           // changes that are not in changed
}

// maxChanged is how many changes are told one by one.
const maxChanged = 1 << 12

// Changes returns the keys of policy that have changed since it was called before, false if these are too many to tell.
func (s *Store) Changes() (keys []resource.Key, ok bool) {
	keys, ok = s.changed, !s.more
	s.changed, s.more = nil, false
	return keys, ok
}

func (s *Store) note(k resource.Key) {
	switch {
	case s.more || !k.Kind.OfPolicy():
	case len(s.changed) == maxChanged:
		s.changed, s.more = nil, true
	default:
		s.changed = append(s.changed, k)
	}
}

// An entry is a resource, or why its value is none.
type entry struct {
	value any
	err   error
}

// maxStrange is how many keys are named that are none.
const maxStrange = 100

// Put reads a value. A wrong one takes the place of the one that was there before. Of too many resources the newest are left out.
func (s *Store) Put(key string, value []byte) {
	s.put(key, func(k resource.Key) (any, error) { return resource.Parse(k, value) })
}

// Wrong is Put of a value that cannot be read, and says why. The key may be one that is none.
func (s *Store) Wrong(key string, err error) {
	if _, none := resource.ParseKey(key); none != nil {
		s.stranger(key, err)
		return
	}
	s.put(key, func(resource.Key) (any, error) { return nil, err })
}

// stranger notes a key that is none.
func (s *Store) stranger(key string, err error) {
	if len(s.strange) < maxStrange {
		s.init()
		s.strange[key[:min(len(key), 300)]] = err
	}
}

func (s *Store) put(key string, read func(resource.Key) (any, error)) {
	k, err := resource.ParseKey(key)
	if err != nil {
		s.stranger(key, err)
		return
	}
	s.init()
	of := s.of[k.Kind]
	if _, ok := of[k.Name]; !ok && len(of) >= k.Kind.Most() {
		s.left[k.Kind]++
		return
	}
	v, err := read(k)
	of[k.Name] = entry{v, err}
	s.note(k)
}

// Delete forgets what a key has said.
func (s *Store) Delete(key string) {
	delete(s.strange, key[:min(len(key), 300)])
	if k, err := resource.ParseKey(key); err == nil {
		delete(s.of[k.Kind], k.Name)
		s.note(k)
	}
}

func (s *Store) init() {
	if s.strange != nil {
		return
	}
	s.strange = map[string]error{}
	for k := range s.of {
		s.of[k] = map[string]entry{}
	}
}

// Missing reports whether some were left out and there is room for them now, an eighth of all: they are to be read again.
func (s *Store) Missing() bool {
	for k, n := range s.left {
		if most := resource.Kind(k).Most(); n > 0 && len(s.of[k]) <= most-most/8 {
			return true
		}
	}
	return false
}

// Left is how many resources of a kind were left out.
func (s *Store) Left(k resource.Kind) int { return s.left[k] }

// Unread returns the names of resources of a kind that could not be read, in order.
func (s *Store) Unread(k resource.Kind) (names []string) {
	for name, e := range s.of[k] {
		if e.err != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Names returns the names of resources of a kind, in no order, wrong ones among them.
func (s *Store) Names(k resource.Kind) iter.Seq[string] { return maps.Keys(s.of[k]) }

// Len is how many resources of a kind there are, wrong ones among them.
func (s *Store) Len(k resource.Kind) int { return len(s.of[k]) }

// Problems are those of what could not be read, of policy or of all else.
func (s *Store) Problems(ofPolicy bool) (list []Problem) {
	for key, err := range s.strange {
		if !ofPolicy {
			list = append(list, Problem{fmt.Sprintf("%q", key), err.Error()})
		}
	}
	for k := range resource.Kinds {
		if k.OfPolicy() != ofPolicy {
			continue
		}
		for name, e := range s.of[k] {
			if e.err != nil {
				list = append(list, Problem{resource.Key{Kind: k, Name: name}.String(), e.err.Error()})
			}
		}
		if n := s.left[k]; n > 0 {
			list = append(list, Problem{k.String(), fmt.Sprintf("%d more than the %d that are read", n, k.Most())})
		}
	}
	slices.SortFunc(list, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Why, b.Why)) })
	return list
}

// One returns the resource with a name, nil if there is none.
func One[T any](s *Store, k resource.Kind, name string) *T {
	v, _ := s.of[k][name].value.(*T)
	return v
}

// All returns the resources of a kind that could be read, by name.
func All[T any](s *Store, k resource.Kind) iter.Seq2[string, *T] {
	return Some(s, k, func(*T) bool { return true })
}

// Some returns those of them that a function accepts: few of many cost no sorting of all.
func Some[T any](s *Store, k resource.Kind, accepts func(*T) bool) iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		var names []string
		for name, e := range s.of[k] {
			if v, ok := e.value.(*T); ok && v != nil && accepts(v) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			if !yield(name, One[T](s, k, name)) {
				return
			}
		}
	}
}
