package store

import "math"

// A condition is a clause of a where (RFC 7047, section 5.1).
type condition struct {
	always bool // it is a boolean
	value  bool // that
	col    *column
	op     string
	arg    Datum
}

// where reads clauses, all of which are to be true.
func (p *parser) where(t *tableSchema, v any) (all []condition, e *Error) {
	l, ok := v.([]any)
	if !ok {
		return nil, Syntax("where is not an array")
	}
	for _, x := range l {
		c, e := p.condition(t, x)
		if e != nil {
			return nil, e
		}
		all = append(all, c)
	}
	return all, nil
}

func (p *parser) condition(t *tableSchema, v any) (c condition, e *Error) {
	if b, ok := v.(bool); ok {
		return condition{always: true, value: b}, nil
	}
	var arg any
	if c.col, c.op, arg, e = t.triple(v, "condition"); e != nil {
		return c, e
	}
	k := c.col.kind
	switch c.op {
	case "<", "<=", ">", ">=":
		if k.isMap() || k.key.kind != integers || k.max != 1 {
			return c, mismatch(c.op, c.col)
		}
		k.min = 1
	case "==", "!=":
	case "includes":
		if !k.isScalar() {
			k.min = 0
		}
	case "excludes":
		if !k.isScalar() {
			k.min, k.max = 0, math.MaxInt
		}
	default:
		return c, fail(noFunction, "No function named %.60s.", c.op)
	}
	c.arg, e = p.datum(&k, arg)
	return c, e
}

// triple reads what conditions and mutations are: a column, an operator and a value.
func (t *tableSchema) triple(v any, what string) (c *column, op string, arg any, e *Error) {
	l, _ := v.([]any)
	if len(l) != 3 {
		return nil, "", nil, Syntax("Parse error in %s.", what)
	}
	name, ok := l[0].(string)
	op, ok2 := l[1].(string)
	if !ok || !ok2 {
		return nil, "", nil, Syntax("Parse error in %s.", what)
	}
	if c = t.byName[name]; c == nil {
		return nil, "", nil, fail(unknown, "No column %.60s in table %s.", name, t.name)
	}
	return c, op, l[2], nil
}

func mismatch(op string, c *column) *Error {
	return Syntax("Type mismatch: %q operator may not be applied to column %s.", op, c.name)
}

// holds reports whether a row is one that a clause means.
func (c *condition) holds(r *Row) bool {
	if c.always {
		return c.value
	}
	d := r.get(c.col)
	switch c.op {
	case "==":
		return d.equal(c.arg)
	case "!=":
		return !d.equal(c.arg)
	case "includes":
		for i, k := range c.arg.keys {
			if !d.has(k, c.arg.value(i)) {
				return false
			}
		}
		return true
	case "excludes":
		for i, k := range c.arg.keys {
			if d.has(k, c.arg.value(i)) {
				return false
			}
		}
		return true
	}
	if len(d.keys) != 1 {
		return false
	}
	n := compare(d.keys[0], c.arg.keys[0])
	switch c.op {
	case "<":
		return n < 0
	case "<=":
		return n <= 0
	case ">":
		return n > 0
	}
	return n >= 0
}

func holds(all []condition, r *Row) bool {
	for i := range all {
		if !all[i].holds(r) {
			return false
		}
	}
	return true
}

// only returns the UUID that all rows have which conditions mean.
func only(all []condition) (id UUID, ok bool) {
	for _, c := range all {
		if !c.always && c.col.index == idColumn && (c.op == "==" || c.op == "includes") {
			return c.arg.keys[0].(UUID), true
		}
	}
	return id, false
}
