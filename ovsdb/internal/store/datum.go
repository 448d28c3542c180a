package store

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A UUID names a row.
type UUID [16]byte

// newUUID returns one of version 4 (RFC 9562).
func newUUID() (u UUID) {
	rand.Read(u[:])
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return u
}

// String returns the usual form.
func (u UUID) String() string {
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func parseUUID(s string) (u UUID, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return u, false
	}
	n, err := hex.Decode(u[:], []byte(strings.ReplaceAll(s, "-", "")))
	return u, err == nil && n == 16
}

// A Datum is the value of a column: a set, or a map if there are values. Keys are in order. It does not change.
type Datum struct {
	keys, values []any // int64, bool, string or UUID
}

// compare orders atoms of one kind.
func compare(a, b any) int {
	switch a := a.(type) {
	case int64:
		return cmp.Compare(a, b.(int64))
	case string:
		return cmp.Compare(a, b.(string))
	case bool:
		switch b := b.(bool); {
		case a == b:
			return 0
		case a:
			return 1
		}
		return -1
	}
	x, y := a.(UUID), b.(UUID)
	return bytes.Compare(x[:], y[:])
}

func (d Datum) equal(o Datum) bool {
	return slices.Equal(d.keys, o.keys) && slices.Equal(d.values, o.values)
}

// at returns where a key is, or belongs.
func (d Datum) at(key any) (int, bool) { return slices.BinarySearchFunc(d.keys, key, compare) }

// has reports whether a key is there, with the value if it is a map's.
func (d Datum) has(key, value any) bool {
	i, ok := d.at(key)
	return ok && (value == nil || d.values == nil || d.values[i] == value)
}

// value returns the value of the i-th key, nil in a set.
func (d Datum) value(i int) any {
	if d.values == nil {
		return nil
	}
	return d.values[i]
}

var zeros = [...]any{integers: int64(0), booleans: false, texts: "", uuids: UUID{}}

// zero returns the default of a column.
func (t *valueType) zero() (d Datum) {
	if t.min > 0 {
		d.keys = []any{zeros[t.key.kind]}
		if t.isMap() {
			d.values = []any{zeros[t.value.kind]}
		}
	}
	return d
}

// size is about what a Datum takes of memory.
func (d Datum) size() int {
	n := 48 + 16*(len(d.keys)+len(d.values))
	for _, l := range [2][]any{d.keys, d.values} {
		for _, a := range l {
			if s, ok := a.(string); ok {
				n += 16 + len(s)
			} else {
				n += 16
			}
		}
	}
	return n
}

// check returns an error if an atom is not among the allowed values.
func (b *base) check(a any) *Error {
	if b.enum != nil && !slices.Contains(b.enum, a) {
		return fail(constraint, "%.60q is not one of the allowed values (%v)", a, b.enum)
	}
	if n, ok := a.(int64); ok {
		switch {
		case n < b.min:
			return fail(constraint, "%d is less than minimum allowed value %d", n, b.min)
		case n > b.max:
			return fail(constraint, "%d is greater than maximum allowed value %d", n, b.max)
		}
	}
	return nil
}

// A parser reads values. Names are UUIDs of rows that the transaction inserts.
type parser struct{ names map[string]*symbol }

type symbol struct {
	id      UUID
	created bool
}

func (p *parser) symbol(name string) *symbol {
	s := p.names[name]
	if s == nil {
		s = &symbol{id: newUUID()}
		p.names[name] = s
	}
	return s
}

// number returns an integer, also one that is written with a fraction or an exponent.
func number(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	if i, err := n.Int64(); err == nil {
		return i, true
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

func (p *parser) atom(b *base, v any) (a any, e *Error) {
	ok := false
	switch b.kind {
	case integers:
		a, ok = number(v)
	case booleans:
		a, ok = v.(bool)
	case texts:
		var s string
		if s, ok = v.(string); strings.ContainsRune(s, 0) {
			return nil, Syntax("null bytes are not supported in strings")
		}
		a = s
	case uuids:
		a, ok = p.uuid(v)
	}
	if !ok {
		return nil, fail(syntaxError, "expected %v", b.kind)
	}
	return a, b.check(a)
}

func (p *parser) uuid(v any) (id UUID, ok bool) {
	l, ok := v.([]any)
	if !ok || len(l) != 2 {
		return id, false
	}
	s, ok := l[1].(string)
	switch {
	case !ok:
		return id, false
	case l[0] == "uuid":
		return parseUUID(s)
	case l[0] == "named-uuid":
		return p.symbol(s).id, true
	}
	return id, false
}

// datum reads a value of a type (RFC 7047, section 5.1).
func (p *parser) datum(t *valueType, v any) (d Datum, e *Error) {
	class := "set"
	if t.isMap() {
		class = "map"
	}
	l, ok := v.([]any)
	many := ok && len(l) > 0 && l[0] == class
	if !many {
		if t.isMap() {
			return d, Syntax("expected a map")
		}
		a, e := p.atom(&t.key, v)
		return Datum{keys: []any{a}}, e
	}
	if len(l) != 2 {
		return d, Syntax("expected a %s", class)
	}
	elems, ok := l[1].([]any)
	if !ok {
		return d, Syntax("expected an array")
	}
	if len(elems) < t.min || len(elems) > t.max {
		return d, Syntax("%s must have %d to %d members but %d are present", class, t.min, t.max, len(elems))
	}
	for _, x := range elems {
		if e := p.element(t, &d, x); e != nil {
			return d, e
		}
	}
	return d.sorted()
}

func (p *parser) element(t *valueType, d *Datum, x any) *Error {
	if t.isMap() {
		l, ok := x.([]any)
		if !ok || len(l) != 2 {
			return Syntax("expected a pair")
		}
		v, e := p.atom(&t.value, l[1])
		if e != nil {
			return e
		}
		d.values, x = append(d.values, v), l[0]
	}
	k, e := p.atom(&t.key, x)
	d.keys = append(d.keys, k)
	return e
}

// sorted returns a Datum with its keys in order, or an error if there are equal ones.
func (d Datum) sorted() (Datum, *Error) {
	order := make([]int, len(d.keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(d.keys[a], d.keys[b]) })
	var out Datum
	for i, at := range order {
		if i > 0 && d.keys[at] == out.keys[i-1] {
			return d, fail(other, "set or map contains duplicate")
		}
		out.keys = append(out.keys, d.keys[at])
		if d.values != nil {
			out.values = append(out.values, d.values[at])
		}
	}
	return out, nil
}

// appendAtom appends an atom in JSON.
func appendAtom(b []byte, a any) []byte {
	switch a := a.(type) {
	case int64:
		return strconv.AppendInt(b, a, 10)
	case bool:
		return strconv.AppendBool(b, a)
	case UUID:
		return append(append(append(b, `["uuid","`...), a.String()...), `"]`...)
	}
	return appendText(b, a.(string))
}

func appendText(b []byte, s string) []byte {
	plain := func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r) }
	if strings.ContainsFunc(s, plain) {
		text, _ := json.Marshal(s)
		return append(b, text...)
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendDatum appends a value of a type in JSON.
func appendDatum(b []byte, t *valueType, d Datum) []byte {
	switch {
	case t.isMap():
		b = append(b, `["map",[`...)
		for i, k := range d.keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendAtom(append(b, '['), k), ',')
			b = append(appendAtom(b, d.values[i]), ']')
		}
		return append(b, `]]`...)
	case len(d.keys) == 1:
		return appendAtom(b, d.keys[0])
	}
	b = append(b, `["set",[`...)
	for i, k := range d.keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendAtom(b, k)
	}
	return append(b, `]]`...)
}
