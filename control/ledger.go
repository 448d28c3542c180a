package control

import (
	"cmp"
	"errors"
	"hash/maphash"
	"slices"
)

// A Ledger keeps the rows of one owner by what they are derived from: a lease, a route of BGP, a node. Set says which rows
// a key has now, and Flush passes the differences to a [Programmer] in one Update. Several keys may have the same row,
// which stays as long as any of them has it; of different rows that replace each other, the one set last counts.
//
// An owner has one Ledger, and no other caller of Program: each Update is a difference to what the Ledger itself flushed, so
// a second one would remove rows that the first still has, and all of them in a snapshot. Programs that do not know of each
// other take different owners.
//
// The zero value is empty. A Ledger is not safe for concurrent use.
type Ledger[K comparable] struct {
	Loose bool // of its Updates

	list    pages[derived[K]]
	keys    slots // by the key of a row: the one with it that was set last
	sources slots // by what rows are derived from: the first of them
	noted   []note
	resync  bool
	seed    maphash.Seed
}

// A derived is a row and what it is derived from.
type derived[K comparable] struct {
	by     K
	row    Row
	others link // with the same key, the last one set first
	beside ref  // the next row of the same K
}

// A note is a key that Flush has to look at. The first one of a key says what was flushed last.
type note struct {
	key   Row // a row with the key
	was   Row // nil = none
	again bool
	order int
}

// Set replaces the rows of a key, none to remove it. A row that is not one of package control is refused by Flush.
func (l *Ledger[K]) Set(k K, rows ...Row) {
	n, at := l.source(k)
	if l.are(n, rows) {
		return
	}
	for n != 0 {
		next := l.list.at(n).beside
		l.drop(n)
		n = next
	}
	var first, last ref
	for i, r := range rows {
		n := l.list.alloc()
		*l.list.at(n) = derived[K]{by: k, row: clean(r)}
		if i > 0 {
			l.list.at(last).beside = n
		} else {
			first = n
		}
		l.add(n)
		last = n
	}
	l.sources.put(at, first)
	l.list.shrink()
}

// are reports whether rows are n and those beside it.
func (l *Ledger[K]) are(n ref, rows []Row) bool {
	for _, r := range rows {
		if n == 0 || l.list.at(n).row != clean(r) {
			return false
		}
		n = l.list.at(n).beside
	}
	return n == 0
}

// source and key find the first row of a K, and the row that counts of those with the key of r.
func (l *Ledger[K]) source(k K) (ref, spot) {
	return l.sources.seek(maphash.Comparable(l.secret(), k), func(n ref) bool { return l.list.at(n).by == k })
}

func (l *Ledger[K]) key(r Row) (ref, spot) {
	return l.keys.seek(hashKey(l.secret(), r), func(n ref) bool { return sameKey(l.list.at(n).row, r) })
}

func (l *Ledger[K]) secret() maphash.Seed {
	if l.seed == (maphash.Seed{}) {
		l.seed = maphash.MakeSeed()
	}
	return l.seed
}

func (l *Ledger[K]) others(n ref) *link { return &l.list.at(n).others }

// row returns the row with a number, nil for 0.
func (l *Ledger[K]) row(n ref) Row {
	if n == 0 {
		return nil
	}
	return l.list.at(n).row
}

// add puts a row before others with its key.
func (l *Ledger[K]) add(n ref) {
	r := l.list.at(n).row
	first, at := l.key(r)
	l.note(r, l.row(first), false)
	push(l.others, n, first)
	l.keys.put(at, n)
}

// drop removes a row.
func (l *Ledger[K]) drop(n ref) {
	r := l.list.at(n).row
	first, at := l.key(r)
	l.note(r, l.row(first), false)
	if next, ok := unlink(l.others, n); ok {
		l.keys.put(at, next)
	}
	l.list.release(n)
}

// note has Flush look at the key of a row, for which now counts.
func (l *Ledger[K]) note(key, now Row, again bool) {
	if n := len(l.noted); n == cap(l.noted) {
		if l.merge(); len(l.noted) > n/2 {
			l.noted = slices.Grow(l.noted, n+64)
		}
	}
	l.noted = append(l.noted, note{key, now, again, len(l.noted)})
}

// merge sorts the notes by key, and leaves one of each.
func (l *Ledger[K]) merge() {
	slices.SortFunc(l.noted, func(a, b note) int { return cmp.Or(compare(a.key, b.key), cmp.Compare(a.order, b.order)) })
	list := l.noted[:0]
	for _, x := range l.noted {
		if first := find(list, x.key); first != nil {
			first.again = first.again || x.again
			continue
		}
		x.order = len(list)
		list = append(list, x)
	}
	clear(l.noted[len(list):])
	l.noted = list
}

// find returns the note of a key that is not before any of a sorted list. What is no row has no order.
func find(list []note, key Row) *note {
	for i := len(list) - 1; i >= 0 && compare(list[i].key, key) == 0; i-- {
		if sameKey(list[i].key, key) {
			return &list[i]
		}
	}
	return nil
}

// Rows returns the rows of a key, as Set was given them.
func (l *Ledger[K]) Rows(k K) (rows []Row) {
	n, _ := l.source(k)
	for ; n != 0; n = l.list.at(n).beside {
		rows = append(rows, l.list.at(n).row)
	}
	return rows
}

// Again has the next Flush pass the rows of a key as advertised again, so that they replace what the
// switch has learned on its ports; see [Update].
func (l *Ledger[K]) Again(k K) {
	for _, r := range l.Rows(k) {
		n, _ := l.key(r)
		l.note(r, l.row(n), true)
	}
}

// Resync has the next Flush pass all rows, as a snapshot: after the Programmer was made anew.
func (l *Ledger[K]) Resync() { l.resync = true }

// Flush passes what has changed since the last Flush. If the Programmer refuses rows, Flush returns its error, and does not
// pass them again until they are set anew; after any other error it passes everything again.
func (l *Ledger[K]) Flush(owner string, p Programmer) error {
	if p == nil {
		return errors.New("control: Flush: the Programmer is nil")
	}
	u := Update{Snapshot: l.resync, Loose: l.Loose}
	if l.resync {
		for _, x := range l.keys.list {
			if x.n != 0 {
				u.Add = append(u.Add, l.row(x.n))
			}
		}
		slices.SortFunc(u.Add, compare)
	}
	l.merge()
	for _, x := range l.noted {
		n, _ := l.key(x.key)
		now := l.row(n)
		again := x.again && now != nil
		switch {
		case again:
			u.Del = append(u.Del, now)
		case !u.Snapshot && now == nil && x.was != nil:
			u.Del = append(u.Del, x.was)
		}
		if !u.Snapshot && n != 0 && (again || now != x.was || now == nil) {
			u.Add = append(u.Add, now) // nil to be refused
		}
	}
	if !u.Snapshot && len(u.Add)+len(u.Del) == 0 {
		l.forget()
		return nil
	}
	err := p.Program(owner, u)
	if err != nil && Refused(err) == nil {
		l.resync = true
		return err
	}
	l.forget()
	l.resync = false
	return err
}

// forget removes the notes, and their memory if there was room for many.
func (l *Ledger[K]) forget() {
	if clear(l.noted); cap(l.noted) > 4096 {
		l.noted = nil
	}
	l.noted = l.noted[:0]
}
