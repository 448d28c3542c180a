package store

import "math"

// A mutation changes a column (RFC 7047, section 5.1).
type mutation struct {
	col *column
	op  string
	arg Datum
}

func (p *parser) mutations(t *tableSchema, v any) (all []mutation, e *Error) {
	l, ok := v.([]any)
	if !ok {
		return nil, Syntax("mutations is not an array")
	}
	for _, x := range l {
		m, e := p.mutation(t, x)
		if e != nil {
			return nil, e
		}
		all = append(all, m)
	}
	return all, nil
}

func (p *parser) mutation(t *tableSchema, v any) (m mutation, e *Error) {
	var arg any
	if m.col, m.op, arg, e = t.triple(v, "mutation"); e != nil {
		return m, e
	}
	if !m.col.mutable {
		return m, fail(constraint, "Cannot mutate immutable column %s in table %s.", m.col.name, t.name)
	}
	k := m.col.kind
	switch m.op {
	case "+=", "-=", "*=", "/=", "%=":
		if k.isMap() || k.key.kind != integers {
			return m, mismatch(m.op, m.col)
		}
		k = valueType{key: base{kind: integers, min: math.MinInt64, max: math.MaxInt64}, min: 1, max: 1}
	case "insert", "delete":
		if k.isScalar() {
			return m, mismatch(m.op, m.col)
		}
		if k.min = 0; m.op == "delete" {
			k.max = math.MaxInt
		}
	default:
		return m, fail(noMutator, "No mutator named %.60s.", m.op)
	}
	m.arg, e = p.datum(&k, arg)
	if e != nil && m.op == "delete" && k.isMap() {
		k.value = base{} // keys alone
		m.arg, e = p.datum(&k, arg)
	}
	return m, e
}

// apply returns a value after a mutation.
func (m *mutation) apply(d Datum) (Datum, *Error) {
	k := &m.col.kind
	switch m.op {
	case "insert":
		d = union(d, m.arg)
	case "delete":
		d = subtract(d, m.arg)
	default:
		return m.count(d)
	}
	if len(d.keys) < k.min || len(d.keys) > k.max {
		return d, fail(constraint, "Attempted to store %d elements in a set or map of %d to %d.", len(d.keys), k.min, k.max)
	}
	return d, nil
}

// count calculates.
func (m *mutation) count(d Datum) (out Datum, e *Error) {
	y := m.arg.keys[0].(int64)
	for _, a := range d.keys {
		n, e := calculate(m.op, a.(int64), y)
		if e == nil {
			e = m.col.kind.key.check(n)
		}
		if e != nil {
			return d, e
		}
		out.keys = append(out.keys, n)
	}
	if out, e = out.sorted(); e != nil {
		e = fail(constraint, "Result of %q operation violates set uniqueness.", m.op)
	}
	return out, e
}

func calculate(op string, x, y int64) (int64, *Error) {
	fits := true
	switch op {
	case "+=":
		z := x + y
		fits = (z > x) == (y > 0) || y == 0
		x = z
	case "-=":
		z := x - y
		fits = (z < x) == (y > 0) || y == 0
		x = z
	case "*=":
		z := x * y
		fits = x == 0 || (z/x == y && !(x == -1 && y == math.MinInt64))
		x = z
	case "/=", "%=":
		switch {
		case y == 0:
			return 0, fail(domainError, "Division by zero.")
		case y == -1 && x == math.MinInt64 && op == "/=":
			fits = false
		case y == -1:
			if x = -x; op == "%=" {
				x = 0
			}
		case op == "/=":
			x /= y
		default:
			x %= y
		}
	}
	if !fits {
		return 0, fail(rangeError, "Result of %q operation is out of range.", op)
	}
	return x, nil
}
