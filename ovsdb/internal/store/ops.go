package store

import (
	"fmt"
	"slices"
	"time"
)

// insert is RFC 7047, section 5.2.1; uuid is of ovsdb-server(7), section 5.2.1.
func (tx *txn) insert(t *table, op map[string]any) *Error {
	if tx.inserts++; tx.inserts > tx.db.limits.Rows {
		return Exhausted("the transaction inserts more than %d rows", tx.db.limits.Rows)
	}
	id := newUUID()
	if v, ok := op["uuid"]; ok {
		s, _ := v.(string)
		if id, ok = parseUUID(s); !ok {
			return Syntax("uuid is not a UUID")
		}
		if tx.row(t, id) != nil || t.rows[id] != nil {
			return fail(duplicateUUID, "This UUID would duplicate a UUID already present within the table or deleted within the same transaction.")
		}
	}
	if v, ok := op["uuid-name"]; ok {
		name, ok := IsID(v)
		if !ok {
			return Syntax("Type mismatch for member 'uuid-name'.")
		}
		s := tx.symbol(name)
		if s.created {
			return fail(duplicateName, "This \"uuid-name\" appeared on an earlier \"insert\" operation.")
		}
		if s.created = true; op["uuid"] == nil {
			id = s.id
		} else {
			s.id = id
		}
	}
	values, e := tx.values(t.tableSchema, op["row"])
	if e != nil {
		return e
	}
	r := &Row{id: id, version: newUUID(), cols: make([]Datum, len(t.columns))}
	for _, c := range t.columns {
		d, ok := values[c]
		if !ok {
			d = c.kind.zero()
			for _, a := range d.keys {
				if e := c.kind.key.check(a); e != nil {
					return e
				}
			}
		}
		r.cols[c.index] = d
	}
	tx.set(t, id, r)
	tx.reply = fmt.Appendf(tx.reply, `{"uuid":["uuid","%v"]}`, id)
	return nil
}

// list reads a list of columns; without one, all are meant.
func (t *tableSchema) list(v any, given bool) (all []*column, e *Error) {
	if !given {
		return append(slices.Clone(t.columns), t.byName["_uuid"], t.byName["_version"]), nil
	}
	l, ok := v.([]any)
	if !ok {
		return nil, Syntax("array of distinct column names expected")
	}
	for _, x := range l {
		name, _ := x.(string)
		c := t.byName[name]
		if c == nil || slices.Contains(all, c) {
			return nil, Syntax("array of distinct column names expected")
		}
		all = append(all, c)
	}
	return all, nil
}

// appendColumns appends an object.
func (r *Row) appendColumns(b []byte, columns []*column) []byte {
	b = append(b, '{')
	for i, c := range columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), c.name...), `":`...)
		b = appendDatum(b, &c.kind, r.get(c))
	}
	return append(b, '}')
}

func (tx *txn) selects(t *table, op map[string]any) *Error {
	v, given := op["columns"]
	columns, e := t.list(v, given)
	if e != nil {
		return e
	}
	rows, e := tx.find(t, op)
	if e != nil {
		return e
	}
	tx.reply = append(tx.reply, `{"rows":[`...)
	for i, r := range rows {
		if i > 0 {
			tx.reply = append(tx.reply, ',')
		}
		if tx.reply = r.appendColumns(tx.reply, columns); len(tx.reply) > tx.db.limits.Reply {
			tx.reply = []byte("[") // what was found is of no use without the rest
			return Exhausted("the results have more than %d bytes", tx.db.limits.Reply)
		}
	}
	tx.reply = append(tx.reply, "]}"...)
	return nil
}

func (tx *txn) counted(n int) { tx.reply = fmt.Appendf(tx.reply, `{"count":%d}`, n) }

func (tx *txn) update(t *table, op map[string]any) *Error {
	values, e := tx.values(t.tableSchema, op["row"])
	if e != nil {
		return e
	}
	for c := range values {
		if !c.mutable || c.index < 0 {
			return fail(constraint, "Cannot update immutable column %s in table %s.", c.name, t.name)
		}
	}
	rows, e := tx.find(t, op)
	if e != nil {
		return e
	}
	if e := tx.spend(len(rows) * (1 + len(t.columns))); e != nil {
		return e
	}
	for _, r := range rows {
		next := &Row{id: r.id, version: newUUID(), cols: slices.Clone(r.cols)}
		for c, d := range values {
			next.cols[c.index] = d
		}
		tx.set(t, r.id, next)
	}
	tx.counted(len(rows))
	return nil
}

func (tx *txn) mutate(t *table, op map[string]any) *Error {
	list, e := tx.mutations(t.tableSchema, op["mutations"])
	if e != nil {
		return e
	}
	rows, e := tx.find(t, op)
	if e != nil {
		return e
	}
	for _, r := range rows {
		next := &Row{id: r.id, version: newUUID(), cols: slices.Clone(r.cols)}
		for i := range list {
			m := &list[i]
			d := &next.cols[m.col.index]
			if e := tx.spend(1 + len(d.keys) + len(m.arg.keys)); e != nil {
				return e
			}
			if *d, e = m.apply(*d); e != nil {
				return e
			}
		}
		tx.set(t, r.id, next)
	}
	tx.counted(len(rows))
	return nil
}

func (tx *txn) delete(t *table, op map[string]any) *Error {
	rows, e := tx.find(t, op)
	if e != nil {
		return e
	}
	for _, r := range rows {
		tx.set(t, r.id, nil)
	}
	tx.counted(len(rows))
	return nil
}

// wait is RFC 7047, section 5.2.6. Rows are compared as sets.
func (tx *txn) wait(t *table, op map[string]any) *Error {
	v, given := op["columns"]
	columns, e := t.list(v, given)
	if e != nil {
		return e
	}
	until, _ := op["until"].(string)
	if until != "==" && until != "!=" {
		return Syntax(`"until" must be "==" or "!="`)
	}
	list, ok := op["rows"].([]any)
	if !ok {
		return Syntax("rows is not an array")
	}
	want, have := map[string]bool{}, map[string]bool{}
	for _, x := range list {
		values, e := tx.values(t.tableSchema, x)
		if e != nil {
			return e
		}
		var b []byte
		for _, c := range columns {
			d, ok := values[c]
			if !ok {
				d = c.kind.zero()
			}
			b = append(appendDatum(b, &c.kind, d), 0)
		}
		want[string(b)] = true
	}
	rows, e := tx.find(t, op)
	if e != nil {
		return e
	}
	if e := tx.spend(len(rows) * (1 + len(columns))); e != nil {
		return e
	}
	equal := true
	for _, r := range rows {
		k := r.key(columns)
		have[k] = true
		equal = equal && want[k]
	}
	if equal = equal && len(have) == len(want); equal == (until == "==") {
		tx.reply = append(tx.reply, "{}"...)
		return nil
	}
	return tx.block(op)
}

func (tx *txn) block(op map[string]any) *Error {
	v, given := op["timeout"]
	if !given {
		tx.waits = true
		return nil
	}
	ms, ok := number(v)
	if !ok || ms < 0 {
		return Syntax("timeout must be a number of milliseconds, 0 or more")
	}
	const longest = 24 * time.Hour
	tx.until = tx.began.Add(time.Duration(min(ms, longest.Milliseconds())) * time.Millisecond)
	if tx.waits = time.Now().Before(tx.until); !tx.waits {
		return fail(timedOut, "\"where\" clause test failed")
	}
	return nil
}
