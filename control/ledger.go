package control

import (
	"errors"
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

	rows    map[K][]Row
	claims  map[Row][]ledgerRow[K] // by keyOf, the last one set last
	changed map[Row]Row            // by keyOf: as last flushed, nil = none
	resync  bool
}

type ledgerRow[K comparable] struct {
	by  K
	row Row
}

// Set replaces the rows of a key, none to remove it. A row that is not one of package control is refused by Flush.
func (l *Ledger[K]) Set(k K, rows ...Row) {
	if l.rows == nil {
		l.rows, l.claims, l.changed = map[K][]Row{}, map[Row][]ledgerRow[K]{}, map[Row]Row{}
	}
	list := make([]Row, len(rows))
	for i, r := range rows {
		list[i] = clean(r)
	}
	if slices.Equal(list, l.rows[k]) {
		return
	}
	for _, r := range l.rows[k] {
		l.touch(keyOf(r))
		l.drop(k, r)
	}
	if delete(l.rows, k); len(list) > 0 {
		l.rows[k] = list
	}
	for _, r := range list {
		l.touch(keyOf(r))
		l.claims[keyOf(r)] = append(l.claims[keyOf(r)], ledgerRow[K]{k, r})
	}
}

func (l *Ledger[K]) drop(k K, r Row) {
	key := keyOf(r)
	i := slices.Index(l.claims[key], ledgerRow[K]{k, r})
	if l.claims[key] = slices.Delete(l.claims[key], i, i+1); len(l.claims[key]) == 0 {
		delete(l.claims, key)
	}
}

// touch notes what was flushed for the key of a row.
func (l *Ledger[K]) touch(key Row) {
	if _, ok := l.changed[key]; !ok {
		l.changed[key] = l.current(key)
	}
}

// current returns the row that counts for a key, nil if there is none.
func (l *Ledger[K]) current(key Row) Row {
	if list := l.claims[key]; len(list) > 0 {
		return list[len(list)-1].row
	}
	return nil
}

// Rows returns the rows of a key, as Set was given them.
func (l *Ledger[K]) Rows(k K) []Row { return slices.Clone(l.rows[k]) }

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
		for key := range l.claims {
			u.Add = append(u.Add, l.current(key))
		}
	} else {
		for key, was := range l.changed {
			switch now := l.current(key); {
			case key == nil && len(l.claims[key]) > 0:
				u.Add = append(u.Add, nil) // to be refused
			case now == was:
			case now == nil:
				u.Del = append(u.Del, was)
			default:
				u.Add = append(u.Add, now)
			}
		}
	}
	if !u.Snapshot && len(u.Add)+len(u.Del) == 0 {
		return nil
	}
	slices.SortFunc(u.Add, compare)
	slices.SortFunc(u.Del, compare)
	err := p.Program(owner, u)
	if err != nil && Refused(err) == nil {
		l.resync = true
		return err
	}
	l.changed = map[Row]Row{} // not as large as that of the first Flush for ever
	l.resync = false
	return err
}
