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

// Slots find a ref by the hash of what it refers to: open addressing, which takes 5 to 11 bytes a ref. The zero value is empty.
type slots struct {
	refs []ref
	live int
}

// seek returns the slot of the ref for which is returns true, or the empty slot that it would take.
func (s *slots) seek(hash uint64, is func(ref) bool) int {
	if s.refs == nil {
		s.refs = make([]ref, 8)
	}
	for i := s.home(hash); ; i = s.next(i) {
		if n := s.refs[i]; n == 0 || is(n) {
			return i
		}
	}
}

func (s *slots) home(hash uint64) int { return int(hash) & (len(s.refs) - 1) }
func (s *slots) next(i int) int       { return (i + 1) & (len(s.refs) - 1) }

// put changes the ref of a slot that seek has returned, to 0 for none. What hash returns for a ref never changes.
func (s *slots) put(i int, n ref, hash func(ref) uint64) {
	was := s.refs[i]
	s.refs[i] = n
	switch {
	case n != 0 && was == 0:
		if s.live++; s.live*4 > len(s.refs)*3 {
			old := s.refs
			s.refs = make([]ref, 2*len(old))
			for _, n := range old {
				if n != 0 {
					s.refs[s.seek(hash(n), func(ref) bool { return false })] = n
				}
			}
		}
	case n == 0 && was != 0:
		if s.live--; s.live == 0 {
			s.refs = nil
			return
		}
		for j := s.next(i); s.refs[j] != 0; j = s.next(j) { // those behind it move up, as near to their homes as they can
			mask := len(s.refs) - 1
			if (j-s.home(hash(s.refs[j])))&mask >= (j-i)&mask {
				s.refs[i], s.refs[j] = s.refs[j], 0
				i = j
			}
		}
	}
}
