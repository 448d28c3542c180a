package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// maxElements is how many elements an operation may have in all.
const maxElements = 1 << 20

// A txn is a transaction under way.
type txn struct {
	parser
	db      *Database
	rows    map[*table]map[UUID]*change
	work    int
	inserts int
	reply   []byte
	holds   func(lock string) bool
	began   time.Time
	until   time.Time // when a wait ends that has not come true
	waits   bool
	durable bool
}

type change struct{ old, new *Row }

// An Outcome is what became of a transaction.
type Outcome struct {
	Reply   json.RawMessage // an array of results, and of an error at its end
	Changes []Change
	Blocked bool      // a wait has not come true, and nothing has happened: try again after another transaction
	Until   time.Time // at last; zero for no end
}

// Transact carries out operations, all or none. holds says which locks the client has. began is when it was tried first.
func (db *Database) Transact(ops []json.RawMessage, holds func(lock string) bool, began time.Time) Outcome {
	tx := &txn{parser: parser{names: map[string]*symbol{}}, db: db, rows: map[*table]map[UUID]*change{}, holds: holds, began: began}
	tx.reply = append(tx.reply, '[')
	for i, text := range ops {
		if i > 0 {
			tx.reply = append(tx.reply, ',')
		}
		e := tx.run(text)
		if e == nil && len(tx.reply) > db.limits.Reply {
			e = Exhausted("the results have more than %d bytes", db.limits.Reply)
		}
		if tx.waits {
			return Outcome{Blocked: true, Until: tx.until}
		}
		if e != nil {
			tx.refuse(e)
			for range ops[i+1:] {
				tx.reply = append(tx.reply, ",null"...)
			}
			return Outcome{Reply: append(tx.reply, ']')}
		}
	}
	changes, e := tx.check()
	if e == nil {
		e = db.write(changes, tx.durable)
	}
	if e != nil {
		if len(ops) > 0 {
			tx.reply = append(tx.reply, ',')
		}
		tx.refuse(e)
		return Outcome{Reply: append(tx.reply, ']')}
	}
	db.put(changes)
	db.compact()
	return Outcome{Reply: append(tx.reply, ']'), Changes: changes}
}

func (tx *txn) refuse(e *Error) {
	text, _ := json.Marshal(e)
	tx.reply = append(tx.reply, text...)
}

// members are those of each operation; with a question mark, it may be missing.
var members = map[string][]string{
	"insert": {"table", "row", "uuid-name?", "uuid?"}, "select": {"table", "where", "columns?"}, "update": {"table", "where", "row"},
	"mutate": {"table", "where", "mutations"}, "delete": {"table", "where"},
	"wait":   {"timeout?", "table", "where", "columns?", "until", "rows"},
	"commit": {"durable"}, "abort": {}, "comment": {"comment"}, "assert": {"lock"},
}

// decode reads JSON whose numbers stay as they are written.
func decode(text []byte) (v any, err error) {
	if n := bytes.Count(text, []byte{','}); n > maxElements {
		return nil, errors.New("too many elements")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// operation reads an operation, and checks which members it has.
func operation(text json.RawMessage) (op map[string]any, name string, e *Error) {
	v, err := decode(text)
	if err != nil {
		return nil, "", Syntax("%v", err)
	}
	op, ok := v.(map[string]any)
	if !ok {
		return nil, "", Syntax("Object expected.")
	}
	name, _ = op["op"].(string)
	want, ok := members[name]
	if !ok {
		return nil, "", Syntax("No operation %.60q", name)
	}
	known := 1
	for _, m := range want {
		m, optional := strings.CutSuffix(m, "?")
		if _, ok := op[m]; ok {
			known++
		} else if !optional {
			return nil, "", Syntax("Required '%s' member is missing.", m)
		}
	}
	if known < len(op) {
		return nil, "", Syntax("Members of %s are %v; another one is present.", name, want)
	}
	return op, name, nil
}

// run carries out an operation.
func (tx *txn) run(text json.RawMessage) *Error {
	op, name, e := operation(text)
	if e != nil {
		return e
	}
	switch name {
	case "commit":
		durable, ok := op["durable"].(bool)
		if tx.durable = tx.durable || durable; !ok {
			return Syntax("Type mismatch for member 'durable'.")
		}
	case "abort":
		return fail(aborted, "aborted by request")
	case "comment":
		if _, ok := op["comment"].(string); !ok {
			return Syntax("Type mismatch for member 'comment'.")
		}
	case "assert":
		return tx.assert(op["lock"])
	default:
		table, _ := op["table"].(string)
		t := tx.db.tables[table]
		if t == nil {
			return Syntax("No table named %.60s.", table)
		}
		switch name {
		case "insert":
			return tx.insert(t, op)
		case "select":
			return tx.selects(t, op)
		case "update":
			return tx.update(t, op)
		case "mutate":
			return tx.mutate(t, op)
		case "wait":
			return tx.wait(t, op)
		}
		return tx.delete(t, op)
	}
	tx.reply = append(tx.reply, "{}"...)
	return nil
}

// IsID reports whether a value is an <id>.
func IsID(v any) (string, bool) {
	s, ok := v.(string)
	ok = ok && s != ""
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		ok = ok && (letter || i > 0 && r >= '0' && r <= '9')
	}
	return s, ok
}

func (tx *txn) assert(v any) *Error {
	lock, ok := IsID(v)
	if !ok {
		return Syntax("Type mismatch for member 'lock'.")
	}
	if !tx.holds(lock) {
		return fail(notOwner, "Asserted lock %.60s not held.", lock)
	}
	tx.reply = append(tx.reply, "{}"...)
	return nil
}

// row returns a row as the transaction has it.
func (tx *txn) row(t *table, id UUID) *Row {
	if c := tx.rows[t][id]; c != nil {
		return c.new
	}
	return t.rows[id]
}

func (tx *txn) set(t *table, id UUID, r *Row) {
	if tx.rows[t] == nil {
		tx.rows[t] = map[UUID]*change{}
	}
	c := tx.rows[t][id]
	if c == nil {
		c = &change{old: t.rows[id]}
		tx.rows[t][id] = c
	}
	c.new = r
}

// spend counts work.
func (tx *txn) spend(n int) *Error {
	if tx.work += n; tx.work > tx.db.limits.Work {
		return Exhausted("the transaction looks at too many rows; at most %d are allowed", tx.db.limits.Work)
	}
	return nil
}

// find returns the rows that the where of an operation means, in an order that does not depend on maps.
func (tx *txn) find(t *table, op map[string]any) (list []*Row, e *Error) {
	where, e := tx.where(t.tableSchema, op["where"])
	if e != nil {
		return nil, e
	}
	if id, ok := only(where); ok {
		if r := tx.row(t, id); r != nil && holds(where, r) {
			list = append(list, r)
		}
		return list, tx.spend(1 + len(where))
	}
	cost := 1
	for _, c := range where {
		cost += 1 + len(c.arg.keys)
	}
	if e := tx.spend(cost * (len(t.rows) + len(tx.rows[t]))); e != nil {
		return nil, e
	}
	for id, r := range t.rows {
		if tx.rows[t][id] == nil && holds(where, r) {
			list = append(list, r)
		}
	}
	for _, c := range tx.rows[t] {
		if c.new != nil && holds(where, c.new) {
			list = append(list, c.new)
		}
	}
	slices.SortFunc(list, func(a, b *Row) int { return compare(a.id, b.id) })
	return list, nil
}

// values reads a row of an operation.
func (p *parser) values(t *tableSchema, v any) (map[*column]Datum, *Error) {
	row, ok := v.(map[string]any)
	if !ok {
		return nil, Syntax("row is not an object")
	}
	all := map[*column]Datum{}
	for _, name := range slices.Sorted(maps.Keys(row)) {
		c := t.byName[name]
		if c == nil {
			return nil, fail(unknown, "No column %.60s in table %s.", name, t.name)
		}
		d, e := p.datum(&c.kind, row[name])
		if e != nil {
			return nil, e
		}
		all[c] = d
	}
	return all, nil
}
