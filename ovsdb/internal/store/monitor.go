package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// A Form is how a Monitor writes rows: the method of its notifications.
type Form string

const (
	Update  Form = "update"  // of monitor (RFC 7047, section 4.1.5)
	Update2 Form = "update2" // of monitor_cond (ovsdb-server(7), section 4.1.12)
	Update3 Form = "update3" // of monitor_cond_since (ovsdb-server(7), section 4.1.15)
)

// A Monitor says what changes in some columns of some tables.
type Monitor struct {
	db     *Database
	form   Form
	tables map[*table]*watch
}

// A watch is what is monitored of a table.
type watch struct {
	columns []*column
	selects [4][]*column // by what happens to a row
	where   []condition
}

const (
	initial = iota
	insert
	remove
	modify
)

var selects = [4]string{"initial", "insert", "delete", "modify"}

// NewMonitor reads monitor-requests: by table, one or an array of them.
func (db *Database) NewMonitor(form Form, requests json.RawMessage) (*Monitor, *Error) {
	all, e := byTable(requests, "monitor-requests")
	if e != nil {
		return nil, e
	}
	m := &Monitor{db: db, form: form, tables: map[*table]*watch{}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t := db.tables[name]
		if t == nil {
			return nil, Syntax("no table named %.60s", name)
		}
		w := new(watch)
		m.tables[t] = w
		for _, r := range all[name] {
			if e := m.request(t, w, r); e != nil {
				return nil, e
			}
		}
	}
	return m, m.fits(nil)
}

// maxWhere is about how many bytes the conditions of a monitor may have: they are kept, and each row that changes is compared with them.
const maxWhere = 128 << 10

// fits refuses a monitor whose conditions are too much, with the next ones of some tables.
func (m *Monitor) fits(next map[*table]*watch) *Error {
	n := 0
	for t, w := range m.tables {
		if next[t] != nil {
			w = next[t]
		}
		for _, c := range w.where {
			n += 100 + c.arg.size()
		}
	}
	if n > maxWhere {
		return Exhausted("the conditions of the monitor take %d bytes; at most %d are allowed", n, maxWhere)
	}
	return nil
}

// byTable reads an object that has one request or an array of them for each table.
func byTable(text json.RawMessage, what string) (map[string][]any, *Error) {
	v, err := decode(text)
	if err != nil {
		return nil, Syntax("%v", err)
	}
	tables, ok := v.(map[string]any)
	if !ok {
		return nil, Syntax("%s are not an object", what)
	}
	all := map[string][]any{}
	for name, v := range tables {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		all[name] = list
	}
	return all, nil
}

func (m *Monitor) request(t *table, w *watch, v any) *Error {
	r, ok := v.(map[string]any)
	if !ok {
		return Syntax("a monitor-request is not an object")
	}
	columns := t.columns
	for k, v := range r {
		var e *Error
		switch {
		case k == "columns":
			columns, e = t.list(v, true)
		case k == "where" && m.form != Update:
			e = m.where(t, w, v)
		case k == "select":
			if _, ok := v.(map[string]any); !ok {
				e = Syntax("select is not an object")
			}
		default:
			e = Syntax("Member '%.60s' is present but not allowed here.", k)
		}
		if e != nil {
			return e
		}
	}
	chosen, _ := r["select"].(map[string]any)
	for k, v := range chosen {
		if _, ok := v.(bool); !ok || !slices.Contains(selects[:], k) {
			return Syntax("select has %.60q", k)
		}
	}
	for _, c := range columns {
		if slices.Contains(w.columns, c) {
			return Syntax("column %s mentioned more than once", c.name)
		}
		w.columns = append(w.columns, c)
		for i, name := range selects {
			if chosen[name] != false {
				w.selects[i] = append(w.selects[i], c)
			}
		}
	}
	for i, name := range selects { // also of no columns
		if w.selects[i] == nil && chosen[name] != false {
			w.selects[i] = []*column{}
		}
	}
	return nil
}

func (m *Monitor) where(t *table, w *watch, v any) *Error {
	p := &parser{names: map[string]*symbol{}}
	all, e := p.where(t.tableSchema, v)
	w.where = append(w.where, all...)
	return e
}

// Change replaces the conditions of tables, and returns what rows come and go by it, nil if none do.
func (m *Monitor) Change(requests json.RawMessage) (updates []byte, e *Error) {
	all, e := byTable(requests, "monitor-cond-update-requests")
	if e != nil {
		return nil, e
	}
	next := map[*table]*watch{}
	for name, list := range all {
		t := m.db.tables[name]
		old := m.tables[t]
		if old == nil {
			return nil, Syntax("no monitored table named %.60s", name)
		}
		w := *old
		w.where = nil
		for _, r := range list {
			o, ok := r.(map[string]any)
			if where, has := o["where"]; !ok || len(o) > 1 || len(o) == 1 && !has {
				return nil, Syntax("a monitor-cond-update-request has \"where\" alone")
			} else if has {
				if e := m.where(t, &w, where); e != nil {
					return nil, e
				}
			}
		}
		next[t] = &w
	}
	if e := m.fits(next); e != nil {
		return nil, e
	}
	out := writer{m: m}
	for _, t := range m.db.order {
		w := next[t]
		if w == nil {
			continue
		}
		old := m.tables[t]
		for id, r := range t.rows {
			switch was, is := w.any(old.where, r), w.any(w.where, r); {
			case was && !is:
				out.change(t, w, id, r, nil)
			case !was && is:
				out.change(t, w, id, nil, r)
			}
		}
		m.tables[t] = w
	}
	return out.end(), nil
}

// any reports whether a row is meant by clauses: those of monitors are alternatives (ovsdb-server(7), section 4.1.12).
func (w *watch) any(where []condition, r *Row) bool {
	if r == nil {
		return false
	}
	return len(where) == 0 || slices.ContainsFunc(where, func(c condition) bool { return c.holds(r) })
}

// Initial returns all rows.
func (m *Monitor) Initial() []byte {
	out := writer{m: m}
	for _, t := range m.db.order {
		w := m.tables[t]
		if w == nil || w.selects[initial] == nil {
			continue
		}
		for id, r := range t.rows {
			if w.any(w.where, r) {
				out.added(t, w, id, r, initial)
			}
		}
	}
	if out.end() == nil {
		return []byte("{}")
	}
	return out.b
}

// Updates returns what changes mean, nil if it is nothing.
func (m *Monitor) Updates(changes []Change) []byte {
	out := writer{m: m}
	for _, c := range changes {
		if w := m.tables[c.table]; w != nil {
			old, new := c.old, c.new
			if !w.any(w.where, old) {
				old = nil
			}
			if !w.any(w.where, new) {
				new = nil
			}
			out.change(c.table, w, c.id(), old, new)
		}
	}
	return out.end()
}

// A writer writes table-updates.
type writer struct {
	m *Monitor
	b []byte
	t *table
}

func (o *writer) row(t *table, id UUID) {
	switch {
	case o.t == nil:
		o.b = append(o.b, `{"`...)
	case o.t != t:
		o.b = append(o.b, `},"`...)
	default:
		o.b = append(o.b, ',')
	}
	if o.t != t {
		o.b = append(append(o.b, t.name...), `":{`...)
		o.t = t
	}
	o.b = append(append(append(o.b, '"'), id.String()...), `":`...)
}

func (o *writer) end() []byte {
	if o.t != nil {
		o.b = append(o.b, "}}"...)
	}
	return o.b
}

// added writes a row that the client does not have, for one of selects.
func (o *writer) added(t *table, w *watch, id UUID, r *Row, why int) {
	o.row(t, id)
	if o.m.form == Update {
		o.b = r.appendColumns(append(o.b, `{"new":`...), w.selects[why])
	} else {
		o.b = r.appendSet(fmt.Appendf(o.b, `{"%s":`, selects[why]), w.selects[why])
	}
	o.b = append(o.b, '}')
}

// change writes a row that has changed.
func (o *writer) change(t *table, w *watch, id UUID, old, new *Row) {
	switch {
	case old == nil && new == nil:
	case old == nil && w.selects[insert] != nil:
		o.added(t, w, id, new, insert)
	case old != nil && new == nil && w.selects[remove] != nil:
		o.row(t, id)
		if o.m.form == Update {
			o.b = old.appendColumns(append(o.b, `{"old":`...), w.selects[remove])
		} else {
			o.b = append(o.b, `{"delete":null`...)
		}
		o.b = append(o.b, '}')
	case old != nil && new != nil && w.selects[modify] != nil:
		o.modify(t, w, id, old, new)
	}
}

func (o *writer) modify(t *table, w *watch, id UUID, old, new *Row) {
	var changed []*column
	for _, c := range w.selects[modify] {
		if !old.get(c).equal(new.get(c)) {
			changed = append(changed, c)
		}
	}
	if len(changed) == 0 {
		return
	}
	o.row(t, id)
	if o.m.form == Update {
		o.b = old.appendColumns(append(o.b, `{"old":`...), changed)
		o.b = new.appendColumns(append(o.b, `,"new":`...), w.selects[modify])
	} else {
		o.b = append(o.b, `{"modify":{`...)
		for i, c := range changed {
			if i > 0 {
				o.b = append(o.b, ',')
			}
			d := new.get(c)
			if c.kind.max > 1 {
				d = diff(old.get(c), d)
			}
			o.b = append(append(append(o.b, '"'), c.name...), `":`...)
			o.b = appendDatum(o.b, &c.kind, d)
		}
		o.b = append(o.b, '}')
	}
	o.b = append(o.b, '}')
}

// appendSet appends the columns that have not their default.
func (r *Row) appendSet(b []byte, columns []*column) []byte {
	var set []*column
	for _, c := range columns {
		if !r.get(c).equal(c.kind.zero()) {
			set = append(set, c)
		}
	}
	return r.appendColumns(b, set)
}

// Form returns how rows are written.
func (m *Monitor) Form() Form { return m.form }
