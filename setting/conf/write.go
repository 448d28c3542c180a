package conf

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// Write returns a struct, or the one that x points to, in the JSON that [Read] reads. It leaves out nil, with or without
// omitempty. Values that a file cannot have are errors: a negative duration in a field without the tag zero:"never",
// a nil pointer in a list or map, and types that Read does not support.
func Write(x any) ([]byte, error) {
	v := reflect.Indirect(reflect.ValueOf(x))
	if v.Kind() != reflect.Struct {
		return nil, fmt.Errorf("conf: Write: %T: must be a struct or a pointer to one", x)
	}
	var b bytes.Buffer
	if err := object(&b, addressable(v)); err != nil {
		return nil, fmt.Errorf("conf: Write: %w", err)
	}
	return b.Bytes(), nil
}

// addressable returns a value with the methods of its pointer.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	x := reflect.New(v.Type()).Elem()
	x.Set(v)
	return x
}

// encode writes a value. If never is set, a negative duration is 0s.
func encode(b *bytes.Buffer, v reflect.Value, never bool) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return errors.New("nil in a list or map; a file cannot have it")
		}
		return encode(b, v.Elem(), never)
	}
	v = addressable(v)
	switch x := v.Addr().Interface().(type) {
	case *time.Duration:
		d := *x
		switch {
		case never && d == 0:
			return errors.New("0s; in a file it means never")
		case never:
			d = max(d, 0)
		case d < 0:
			return fmt.Errorf("%v: must not be negative", d)
		}
		return literal(b, d.String())
	case json.Marshaler, encoding.TextMarshaler:
		return literal(b, x)
	}
	switch kind := v.Kind(); {
	case kind == reflect.Struct:
		return object(b, v)
	case kind == reflect.Slice:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := encode(b, v.Index(i), never); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case kind == reflect.Map && v.Type().Key().Kind() == reflect.String:
		names := map[string]reflect.Value{}
		for k, x := range v.Seq2() {
			names[k.String()] = x
		}
		sep := "{"
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if err := write(b, &sep, name, names[name], never); err != nil {
				return err
			}
		}
		return closing(b, sep)
	case !readable(v):
		return fmt.Errorf("a file cannot set a %v", v.Type())
	}
	return literal(b, v.Interface())
}

// readable reports whether a file can have a value as a string, an integer, or true or false.
func readable(v reflect.Value) bool {
	return v.CanInt() || v.CanUint() || v.Kind() == reflect.String || v.Kind() == reflect.Bool
}

// literal writes a value as encoding/json does.
func literal(b *bytes.Buffer, x any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	err := e.Encode(x)
	if err == nil {
		b.Truncate(b.Len() - 1) // the newline
	}
	return err
}

// object writes a struct.
func object(b *bytes.Buffer, v reflect.Value) error {
	sep := "{"
	for _, f := range Fields(v.Type()) {
		x := v.FieldByIndex(f.Index)
		if x.IsZero() && (f.omit() || f.never() || slices.Contains(nils, x.Kind())) {
			continue
		}
		if err := write(b, &sep, f.Key, x, f.never()); err != nil {
			return err
		}
	}
	return closing(b, sep)
}

// nils are the kinds of values that can be nil.
var nils = []reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan}

// write writes a name and a value behind a brace or comma.
func write(b *bytes.Buffer, sep *string, name string, v reflect.Value, never bool) error {
	b.WriteString(*sep)
	*sep = ","
	literal(b, name)
	b.WriteByte(':')
	if err := encode(b, v, never); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// closing ends an object.
func closing(b *bytes.Buffer, sep string) error {
	if sep == "{" {
		b.WriteByte('{')
	}
	return b.WriteByte('}')
}
