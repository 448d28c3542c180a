package kube

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// errClash has everything read again: an object has gone whose name another one has, too.
var errClash = errors.New("an object has gone that had the name of another one: everything is read again")

var seed = maphash.MakeSeed()

// A sink takes what a reflector has of a kind: all objects, and then each that changes. Most changes, such as those of the status that a
// kubelet writes, say nothing new.
type sink struct {
	d *Datastore
	k *kind
	t *teller

	of     map[string]entry // by name; the teller's lock
	listed bool             // likewise

	version atomic.Value // the newest that was seen, a string
}

// An entry is an object.
type entry struct {
	sum  uint64 // of what it says
	keys []string
}

// Transformer implements [cache.TransformingStore].
func (s *sink) Transformer() cache.TransformFunc {
	return func(x any) (any, error) {
		if o, ok := x.(runtime.Object); ok {
			return s.k.strip(o), nil
		}
		return x, nil
	}
}

// Replace implements [cache.ReflectorStore].
func (s *sink) Replace(list []any, version string) error {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	is := make(map[string]bool, len(list))
	for _, x := range list {
		if o, ok := x.(metav1.Object); ok {
			is[s.id(o)] = true
		}
	}
	changed := false
	for id := range s.of {
		if !is[id] {
			changed = s.remove(id) || changed
		}
	}
	for _, x := range list {
		if o, ok := x.(metav1.Object); ok {
			changed = s.set(o) || changed
		}
	}
	s.UpdateResourceVersion(version)
	if !s.listed {
		s.listed, changed = true, true
		s.t.waiting--
	}
	s.done(changed)
	return nil
}

// Add implements [cache.ReflectorStore].
func (s *sink) Add(x any) error { return s.Update(x) }

// Update implements [cache.ReflectorStore].
func (s *sink) Update(x any) error {
	if o, ok := x.(metav1.Object); ok {
		s.t.mu.Lock()
		defer s.t.mu.Unlock()
		s.done(s.set(o))
	}
	return nil
}

// Delete implements [cache.ReflectorStore].
func (s *sink) Delete(x any) error {
	if o, ok := x.(metav1.Object); ok {
		s.t.mu.Lock()
		defer s.t.mu.Unlock()
		s.done(s.remove(s.id(o)))
	}
	return nil
}

// Resync implements [cache.ReflectorStore].
func (s *sink) Resync() error { return nil }

// UpdateResourceVersion implements [cache.ResourceVersionUpdater].
func (s *sink) UpdateResourceVersion(version string) { s.version.Store(version) }

func (s *sink) newest() string {
	version, _ := s.version.Load().(string)
	return version
}

func (s *sink) id(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// done ends a change, when all kinds are listed.
func (s *sink) done(changed bool) {
	if !changed || s.t.waiting > 0 || s.t.ctx.Err() != nil {
		return
	}
	if err := s.t.r.Done(s.t.ctx); err != nil {
		s.t.end(err)
	}
}

// set passes on what an object says, and reports whether that is new.
func (s *sink) set(o metav1.Object) bool {
	id := s.id(o)
	old, known := s.of[id]
	if !known && len(s.of) >= s.k.most() {
		return false // package model has left out some already, and has everything read again when there is room
	}
	list := s.k.says(&s.d.cfg, o.(runtime.Object))
	var h maphash.Hash
	h.SetSeed(seed)
	is := make(map[string]bool, len(list))
	e := entry{}
	for _, x := range list {
		if !s.t.wanted(x.key) || is[x.key] {
			continue
		}
		is[x.key] = true
		e.keys = append(e.keys, x.key)
		for _, part := range [][]byte{[]byte(x.key), x.value, fmt.Append(nil, x.err)} {
			h.Write(part)
			h.WriteByte(0) // which no key has, and no JSON
		}
	}
	if e.sum = h.Sum64(); known && e.sum == old.sum {
		return false
	}
	for _, key := range old.keys {
		if !is[key] {
			s.unsay(key)
		}
	}
	s.of[id] = e
	for _, x := range list {
		if is[x.key] {
			s.say(id, x)
		}
	}
	return known || len(e.keys) > 0
}

// say passes on a key. One that two objects say is wrong.
func (s *sink) say(id string, x said) {
	me := s.k.String() + id
	other, ok := s.t.owner[x.key]
	if !ok {
		s.t.owner[x.key] = me
	}
	if ok && other != me && s.t.clash[x.key] == nil {
		s.t.clash[x.key] = fmt.Errorf("two objects have this name: %s and %s", other, me)
	}
	if err := cmp.Or(s.t.clash[x.key], x.err); err != nil {
		s.t.r.Wrong(x.key, err)
	} else {
		s.t.r.Put(x.key, x.value)
	}
}

// unsay takes a key back.
func (s *sink) unsay(key string) {
	if s.t.clash[key] != nil {
		s.t.end(errClash)
	}
	delete(s.t.owner, key)
	s.t.r.Delete(key)
}

// remove takes back what an object has said, and reports whether it was anything.
func (s *sink) remove(id string) bool {
	e, ok := s.of[id]
	delete(s.of, id)
	for _, key := range e.keys {
		s.unsay(key)
	}
	return ok && len(e.keys) > 0
}
