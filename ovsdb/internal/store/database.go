// Package store is a database of OVSDB (RFC 7047) in memory, with a file that keeps it: transactions with all their operations, references,
// rows that go when nothing refers to them, and indexes.
//
//	operations --Transact--> reply, changes ----> the file, and who monitors
//
// The file has the format of ovsdb-server's standalone databases (ovsdb(5)), so that ovsdb-tool reads it, and a database moves by its file.
// Reals and weak references are in no column of the schema hardware_vtep, and not supported.
//
// A client cannot have it do or keep more than the Limits say. Nothing is safe for concurrent use.
package store

import (
	"maps"
	"slices"
)

// Limits are what a database does and keeps at most. What goes beyond is refused as "resources exhausted".
type Limits struct {
	Rows  int // of all tables
	Bytes int // about what they take of memory
	Work  int // of a transaction: rows that it looks at, and elements that it handles
	Reply int // bytes of the results of a transaction
}

// DefaultLimits suffice for 200,000 MACs.
var DefaultLimits = Limits{Rows: 250_000, Bytes: 512 << 20, Work: 20_000_000, Reply: 128 << 20}

// A Row has a value for each column of its table. It does not change: another one replaces it.
type Row struct {
	id, version UUID
	cols        []Datum
	size        int
}

func (r *Row) get(c *column) Datum {
	switch c.index {
	case idColumn:
		return Datum{keys: []any{r.id}}
	case versionColumn:
		return Datum{keys: []any{r.version}}
	}
	return r.cols[c.index]
}

func (r *Row) measure() {
	r.size = 100
	for _, d := range r.cols {
		r.size += d.size()
	}
}

// A table has rows, how often each is referred to, and for each index which row has a value.
type table struct {
	*tableSchema
	rows    map[UUID]*Row
	refs    map[UUID]int
	indexes []map[string]UUID
}

// A Database has the tables of a schema.
type Database struct {
	Schema *Schema
	limits Limits
	tables map[string]*table
	order  []*table // by name
	rows   int
	bytes  int
	file   *file // nil without one
}

// New returns an empty database in memory.
func New(s *Schema, l Limits) *Database {
	db := &Database{Schema: s, limits: l, tables: map[string]*table{}}
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		t := &table{tableSchema: s.tables[name], rows: map[UUID]*Row{}, refs: map[UUID]int{}}
		for range t.tableSchema.indexes {
			t.indexes = append(t.indexes, map[string]UUID{})
		}
		db.tables[name], db.order = t, append(db.order, t)
	}
	return db
}

// Size returns how many rows there are, and about what they take of memory.
func (db *Database) Size() (rows, bytes int) { return db.rows, db.bytes }

// A Change is a row before and after a transaction, nil where it is not.
type Change struct {
	table    *table
	old, new *Row
}

func (c *Change) id() UUID {
	if c.new != nil {
		return c.new.id
	}
	return c.old.id
}

// key is a row's value for an index.
func (r *Row) key(index []*column) string {
	var b []byte
	for _, c := range index {
		b = append(appendDatum(b, &c.kind, r.get(c)), 0)
	}
	return string(b)
}

// refer calls f for each row that r refers to.
func (db *Database) refer(t *table, r *Row, f func(c *column, to *table, id UUID)) {
	if r == nil {
		return
	}
	for _, c := range t.columns {
		for _, x := range [2]struct {
			b    *base
			list []any
		}{{&c.kind.key, r.cols[c.index].keys}, {&c.kind.value, r.cols[c.index].values}} {
			if x.b.ref == "" {
				continue
			}
			for _, a := range x.list {
				f(c, db.tables[x.b.ref], a.(UUID))
			}
		}
	}
}

// put carries out changes that have been checked.
func (db *Database) put(changes []Change) {
	for _, c := range changes {
		t := c.table
		if c.old != nil {
			for i, index := range t.tableSchema.indexes {
				if k := c.old.key(index); t.indexes[i][k] == c.old.id {
					delete(t.indexes[i], k)
				}
			}
			delete(t.rows, c.old.id)
			db.rows--
			db.bytes -= c.old.size
		}
		db.refer(t, c.old, func(_ *column, to *table, id UUID) {
			if to.refs[id]--; to.refs[id] == 0 {
				delete(to.refs, id)
			}
		})
		db.refer(t, c.new, func(_ *column, to *table, id UUID) { to.refs[id]++ })
		if c.new == nil {
			continue
		}
		t.rows[c.new.id] = c.new
		db.rows++
		db.bytes += c.new.size
	}
	for _, c := range changes { // after all old keys have gone
		if c.new != nil {
			for i, index := range c.table.tableSchema.indexes {
				c.table.indexes[i][c.new.key(index)] = c.new.id
			}
		}
	}
}
