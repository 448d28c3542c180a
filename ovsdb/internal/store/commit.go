package store

import (
	"maps"
	"slices"
)

// check returns the changes of a transaction, with rows that nothing refers to any more, or why they cannot be.
func (tx *txn) check() ([]Change, *Error) {
	for t, rows := range tx.rows {
		for id, c := range rows {
			if c.old == c.new || c.old != nil && c.new != nil && same(c.old, c.new) {
				delete(rows, id)
			}
		}
		if len(rows) == 0 {
			delete(tx.rows, t)
		}
	}
	if len(tx.rows) == 0 {
		return nil, nil
	}
	if e := tx.references(); e != nil {
		return nil, e
	}
	changes := tx.changes()
	if e := tx.counts(changes); e != nil {
		return nil, e
	}
	return changes, tx.unique()
}

func same(a, b *Row) bool { return slices.EqualFunc(a.cols, b.cols, Datum.equal) }

// changes returns all, in an order that depends on nothing but the rows.
func (tx *txn) changes() (all []Change) {
	for _, t := range tx.db.order {
		for _, id := range slices.SortedFunc(maps.Keys(tx.rows[t]), func(a, b UUID) int { return compare(a, b) }) {
			if c := tx.rows[t][id]; c.old != nil || c.new != nil {
				all = append(all, Change{t, c.old, c.new})
			}
		}
	}
	return all
}

type place struct {
	t  *table
	id UUID
}

// references checks that what rows refer to is there, and takes out rows that nothing refers to.
func (tx *txn) references() (e *Error) {
	delta := map[place]int{}
	touched := func(t *table, c *change) {
		tx.db.refer(t, c.old, func(_ *column, to *table, id UUID) { delta[place{to, id}]-- })
		tx.db.refer(t, c.new, func(col *column, to *table, id UUID) {
			if delta[place{to, id}]++; e == nil && tx.row(to, id) == nil {
				e = fail(integrity, "Table %s column %s row %v references nonexistent row %v in table %s.", t.name, col.name, c.new.id, id, to.name)
			}
		})
	}
	for t, rows := range tx.rows {
		for id, c := range rows {
			touched(t, c)
			delta[place{t, id}] += 0
		}
	}
	if e != nil {
		return e
	}
	var check []place
	for p, n := range delta {
		switch left := p.t.refs[p.id] + n; {
		case left > 0 && tx.row(p.t, p.id) == nil:
			return fail(integrity, "cannot delete %s row %v because of %d remaining reference(s)", p.t.name, p.id, left)
		case left == 0:
			check = append(check, p)
		}
	}
	for len(check) > 0 {
		p := check[len(check)-1]
		check = check[:len(check)-1]
		r := tx.row(p.t, p.id)
		if r == nil || p.t.root || p.t.refs[p.id]+delta[p] > 0 {
			continue
		}
		tx.set(p.t, p.id, nil)
		tx.db.refer(p.t, r, func(_ *column, to *table, id UUID) {
			delta[place{to, id}]--
			check = append(check, place{to, id})
		})
	}
	return nil
}

// counts checks how many rows there are.
func (tx *txn) counts(changes []Change) *Error {
	rows, bytes, of := tx.db.rows, tx.db.bytes, map[*table]int{}
	for _, c := range changes {
		if c.old != nil {
			rows, bytes, of[c.table] = rows-1, bytes-c.old.size, of[c.table]-1
		}
		if c.new != nil {
			c.new.measure()
			rows, bytes, of[c.table] = rows+1, bytes+c.new.size, of[c.table]+1
		}
	}
	for t, n := range of {
		if n += len(t.rows); n > t.maxRows {
			return fail(constraint, "transaction causes %q table to contain %d rows, greater than the schema-defined limit of %d row(s)", t.name, n, t.maxRows)
		}
	}
	l := tx.db.limits
	if rows > l.Rows && rows > tx.db.rows {
		return Exhausted("the database would have %d rows; at most %d are allowed", rows, l.Rows)
	}
	if bytes > l.Bytes && bytes > tx.db.bytes {
		return Exhausted("the database would take %d bytes; at most %d are allowed", bytes, l.Bytes)
	}
	return nil
}

// unique checks indexes.
func (tx *txn) unique() *Error {
	for t, rows := range tx.rows {
		for i, index := range t.tableSchema.indexes {
			keys := map[string]UUID{}
			for id, c := range rows {
				if c.new == nil {
					continue
				}
				k := c.new.key(index)
				first, twice := keys[k]
				if !twice {
					first, twice = t.indexes[i][k]
					twice = twice && rows[first] == nil
				}
				if twice {
					return fail(constraint, "Transaction causes multiple rows in %q table to have identical values (%.60s) for index on column %q: %v and %v.", t.name, k, index[0].name, first, id)
				}
				keys[k] = id
			}
		}
	}
	return nil
}
