package control

// A ref is the number of a value in pages, 0 for none.
type ref uint32

// A link is the place of a value in a list, whose first one somebody else knows.
type link struct{ next, prev ref }

// push puts n before the first of a list.
func push(at func(ref) *link, n, first ref) {
	if *at(n) = (link{next: first}); first != 0 {
		at(first).prev = n
	}
}

// unlink takes n out of its list, and reports whether it was the first, which next is now.
func unlink(at func(ref) *link, n ref) (next ref, first bool) {
	l := *at(n)
	if l.next != 0 {
		at(l.next).prev = l.prev
	}
	if l.prev != 0 {
		at(l.prev).next = l.next
	}
	*at(n) = link{}
	return l.next, l.prev == 0
}

// Pages hold values of one kind, so that they are small, need no map of their own and do not move. The zero value has none.
type pages[T any] struct {
	list []*[512]T
	last ref
	free []ref
}

func (s *pages[T]) at(n ref) *T { return &s.list[n>>9][n&511] }

func (s *pages[T]) alloc() ref {
	if n := len(s.free); n > 0 {
		r := s.free[n-1]
		s.free = s.free[:n-1]
		return r
	}
	s.last++
	if int(s.last>>9) >= len(s.list) {
		s.list = append(s.list, new([512]T))
	}
	return s.last
}

// release forgets a value.
func (s *pages[T]) release(n ref) {
	*s.at(n) = *new(T)
	s.free = append(s.free, n)
}

// shrink frees all memory if there is no value.
func (s *pages[T]) shrink() {
	if len(s.free) == int(s.last) {
		*s = pages[T]{}
	}
}

// Slots find a ref by the hash of what it refers to: open addressing, which takes 11 to 22 bytes a ref. The zero value is empty.
type slots struct {
	list []slot
	live int
}

// A slot has the hash beside the ref, since to look at what another ref refers to is a cache miss.
type slot struct {
	n    ref // 0 = empty
	hash uint32
}

// A spot is where seek has found a ref, or found room for one with the hash.
type spot struct {
	i    int
	hash uint32
}

// seek returns the ref with a hash for which is returns true, 0 if there is none, and where put changes it.
func (s *slots) seek(hash uint64, is func(ref) bool) (ref, spot) {
	if s.list == nil {
		s.list = make([]slot, 8)
	}
	at := spot{hash: uint32(hash)}
	for at.i = s.home(at.hash); ; at.i = s.next(at.i) {
		if x := s.list[at.i]; x.n == 0 || x.hash == at.hash && is(x.n) {
			return x.n, at
		}
	}
}

func (s *slots) home(hash uint32) int { return int(hash) & (len(s.list) - 1) }
func (s *slots) next(i int) int       { return (i + 1) & (len(s.list) - 1) }

// put changes the ref at a spot that seek has just returned, to 0 for none.
func (s *slots) put(at spot, n ref) {
	i := at.i
	was := s.list[i].n
	s.list[i] = slot{n, at.hash}
	switch {
	case n != 0 && was == 0:
		if s.live++; s.live*4 > len(s.list)*3 {
			s.grow()
		}
	case n == 0 && was != 0:
		if s.live--; s.live == 0 {
			s.list = nil
			return
		}
		for j := s.next(i); s.list[j].n != 0; j = s.next(j) { // those behind it move up, as near to their homes as they can
			mask := len(s.list) - 1
			if (j-s.home(s.list[j].hash))&mask >= (j-i)&mask {
				s.list[i], s.list[j] = s.list[j], slot{}
				i = j
			}
		}
	}
}

func (s *slots) grow() {
	old := s.list
	s.list = make([]slot, 2*len(old))
	for _, x := range old {
		if x.n != 0 {
			i := s.home(x.hash)
			for s.list[i].n != 0 {
				i = s.next(i)
			}
			s.list[i] = x
		}
	}
}
