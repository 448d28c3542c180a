package store

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

//go:embed vtep.ovsschema
var vtep []byte // of Open vSwitch 3.1, which is under the Apache License 2.0, too

// A kind is one of atoms. Reals are in no column of the schema.
type kind uint8

const (
	void kind = iota
	integers
	booleans
	texts
	uuids
)

var kinds = map[string]kind{"integer": integers, "boolean": booleans, "string": texts, "uuid": uuids}

func (k kind) String() string {
	return [...]string{"void", "integer", "boolean", "string", "uuid"}[k]
}

// A base is a type of atoms (RFC 7047, section 3.2).
type base struct {
	kind     kind
	enum     []any
	min, max int64
	ref      string // table that UUIDs refer to
}

// A valueType is that of a column: a map if value is not void, else a set.
type valueType struct {
	key, value base
	min, max   int
}

func (t *valueType) isMap() bool    { return t.value.kind != void }
func (t *valueType) isScalar() bool { return !t.isMap() && t.min == 1 && t.max == 1 }

// A column of a table. Those that every table has have a negative index.
type column struct {
	name      string
	index     int
	kind      valueType
	mutable   bool
	ephemeral bool // not kept in the file
}

const (
	idColumn      = -1
	versionColumn = -2
)

// A tableSchema says what rows of a table have.
type tableSchema struct {
	name    string
	columns []*column // by name
	byName  map[string]*column
	maxRows int
	root    bool // rows stay while nothing refers to them
	indexes [][]*column
}

// A Schema is that of a database.
type Schema struct {
	Name   string
	Text   json.RawMessage
	tables map[string]*tableSchema
}

// VTEP returns the schema hardware_vtep.
func VTEP() *Schema {
	s, err := parseSchema(vtep)
	if err != nil {
		panic(err) // a test reads it
	}
	return s
}

type schemaJSON struct {
	Name   string
	Tables map[string]struct {
		Columns map[string]struct {
			Type      json.RawMessage
			Ephemeral bool
			Mutable   *bool
		}
		MaxRows int
		IsRoot  bool
		Indexes [][]string
	}
}

func parseSchema(text []byte) (*Schema, error) {
	var in schemaJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	s := &Schema{Name: in.Name, Text: text, tables: map[string]*tableSchema{}}
	for name, t := range in.Tables {
		out := &tableSchema{name: name, byName: map[string]*column{}, maxRows: t.MaxRows, root: t.IsRoot}
		if out.maxRows == 0 {
			out.maxRows = math.MaxInt
		}
		for i, n := range slices.Sorted(maps.Keys(t.Columns)) {
			c := t.Columns[n]
			k, err := parseType(c.Type)
			if err != nil {
				return nil, fmt.Errorf("column %s of %s: %w", n, name, err)
			}
			col := &column{name: n, index: i, kind: k, ephemeral: c.Ephemeral, mutable: c.Mutable == nil || *c.Mutable}
			out.columns, out.byName[n] = append(out.columns, col), col
		}
		one := valueType{key: base{kind: uuids}, min: 1, max: 1}
		out.byName["_uuid"] = &column{name: "_uuid", index: idColumn, kind: one}
		out.byName["_version"] = &column{name: "_version", index: versionColumn, kind: one}
		for _, names := range t.Indexes {
			var cols []*column
			for _, n := range names {
				cols = append(cols, out.byName[n])
			}
			out.indexes = append(out.indexes, cols)
		}
		s.tables[name] = out
	}
	return s, nil
}

func parseType(text json.RawMessage) (t valueType, err error) {
	t.min, t.max = 1, 1
	if text[0] == '"' {
		t.key, err = parseBase(text)
		return t, err
	}
	var in struct {
		Key, Value json.RawMessage
		Min        *int
		Max        any
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return t, err
	}
	if t.key, err = parseBase(in.Key); err != nil {
		return t, err
	}
	if in.Value != nil {
		if t.value, err = parseBase(in.Value); err != nil {
			return t, err
		}
	}
	if in.Min != nil {
		t.min = *in.Min
	}
	switch m := in.Max.(type) {
	case string:
		t.max = math.MaxInt
	case float64:
		t.max = int(m)
	}
	return t, nil
}

func parseBase(text json.RawMessage) (b base, err error) {
	b.min, b.max = math.MinInt64, math.MaxInt64
	var in struct {
		Type       string
		Enum       []any
		MinInteger *int64
		MaxInteger *int64
		RefTable   string
		RefType    string
	}
	if text[0] == '"' {
		err = json.Unmarshal(text, &in.Type)
	} else {
		err = json.Unmarshal(text, &in)
	}
	if err != nil {
		return b, err
	}
	b.kind, b.ref = kinds[in.Type], in.RefTable
	if b.kind == void || in.RefType == "weak" {
		return b, fmt.Errorf("type %q %s is not supported", in.Type, in.RefType)
	}
	if in.MinInteger != nil {
		b.min = *in.MinInteger
	}
	if in.MaxInteger != nil {
		b.max = *in.MaxInteger
	}
	if len(in.Enum) == 2 { // ["set", [...]]
		b.enum, _ = in.Enum[1].([]any)
	}
	return b, nil
}
