package control

import (
	"hash/maphash"
	"iter"
)

// A chain lists the records of an owner with a key, the last that was added or changed first.
type chain[K comparable] struct {
	key  func(*record) K
	link func(*record) *link
	seed maphash.Seed
	slots
}

// owned is a key of an owner.
type owned[K comparable] struct {
	owner *owner
	key   K
}

func newChain[K comparable](key func(*record) K, link func(*record) *link) chain[K] {
	return chain[K]{key: key, link: link, seed: maphash.MakeSeed()}
}

func (c *chain[K]) of(r *record) owned[K] { return owned[K]{r.place.owner, c.key(r)} }

// seek returns the first record of a key, 0 if there is none, and where put changes it.
func (c *chain[K]) seek(s *pages[record], k owned[K]) (ref, spot) {
	return c.slots.seek(maphash.Comparable(c.seed, k), func(n ref) bool { return c.of(s.at(n)) == k })
}

// first returns the first record of an owner with a key, 0 if there is none.
func (c *chain[K]) first(s *pages[record], o *owner, k K) ref {
	n, _ := c.seek(s, owned[K]{o, k})
	return n
}

// links returns how to find the links of records.
func (c *chain[K]) links(s *pages[record]) func(ref) *link {
	return func(n ref) *link { return c.link(s.at(n)) }
}

func (c *chain[K]) add(s *pages[record], n ref) {
	first, at := c.seek(s, c.of(s.at(n)))
	push(c.links(s), n, first)
	c.put(at, n)
}

func (c *chain[K]) remove(s *pages[record], n ref) {
	if next, first := unlink(c.links(s), n); first {
		_, at := c.seek(s, c.of(s.at(n)))
		c.put(at, next)
	}
}

func (c *chain[K]) set(s *pages[record], n ref, in bool) {
	if in {
		c.add(s, n)
	} else {
		c.remove(s, n)
	}
}

// all iterates over the records with a key by precedence. The one at hand may be dropped meanwhile.
func (c *chain[K]) all(s *store, k K) iter.Seq2[ref, *record] {
	return func(yield func(ref, *record) bool) {
		for _, o := range s.sorted {
			for n := c.first(&s.pages, o, k); n != 0; {
				r := s.at(n)
				next := c.link(r).next
				if !yield(n, r) {
					return
				}
				n = next
			}
		}
	}
}
