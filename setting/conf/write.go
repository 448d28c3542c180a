package conf

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Write returns a struct, or what x points to, in JSON: what [Read] reads. What is nil is left out,
// with omitempty or without. What no file can say is an error: a negative duration in a field without the
// tag zero:"never", a nil pointer in a list, and types that Read does not read.
func Write(x any) ([]byte, error) {
	v := reflect.Indirect(reflect.ValueOf(x))
	if v.Kind() != reflect.Struct {
		return nil, fmt.Errorf("conf: Write: %T; wanted is a struct, or a pointer to one", x)
	}
	var b bytes.Buffer
	if err := object(&b, addressable(v)); err != nil {
		return nil, fmt.Errorf("conf: Write: %w", err)
	}
	return b.Bytes(), nil
}

// addressable returns a value that has the methods of its pointer, too.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	x := reflect.New(v.Type()).Elem()
	x.Set(v)
	return x
}

// encode writes a value as Report.fill reads it.
func encode(b *bytes.Buffer, v reflect.Value, never bool) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return errors.New("nil; no file has it in a list, or in an object of names")
		}
		return encode(b, v.Elem(), never)
	}
	v = addressable(v)
	switch x := v.Addr().Interface().(type) {
	case *time.Duration:
		d := *x
		switch {
		case never && d == 0:
			return errors.New("0s, which in a file is never")
		case never:
			d = max(d, 0)
		case d < 0:
			return fmt.Errorf("%v; no file has a negative duration here", d)
		}
		b.WriteString(`"` + d.String() + `"`)
		return nil
	case json.Marshaler, encoding.TextMarshaler:
		return literal(b, x)
	}
	switch v.Kind() {
	case reflect.Struct:
		return object(b, v)
	case reflect.Slice, reflect.Array:
		return each(b, v.Len(), "[]", func(i int) error { return encode(b, v.Index(i), never) })
	case reflect.Map:
		return members(b, v, never)
	}
	if !readable(v) {
		return fmt.Errorf("a value of type %v, which no file has", v.Type())
	}
	return literal(b, v.Interface())
}

// readable reports whether a file can have a value as a string, a number, or true or false.
func readable(v reflect.Value) bool {
	return v.CanInt() || v.CanUint() || v.CanFloat() || v.Kind() == reflect.String || v.Kind() == reflect.Bool
}

// literal writes what encoding/json knows to write.
func literal(b *bytes.Buffer, x any) error {
	text, err := json.Marshal(x)
	b.Write(text)
	return err
}

// members writes a map, in the order of its names.
func members(b *bytes.Buffer, v reflect.Value, never bool) error {
	type entry struct {
		name  string
		value reflect.Value
	}
	var list []entry
	for k, x := range v.Seq2() {
		name, err := nameOf(k)
		if err != nil {
			return err
		}
		list = append(list, entry{name, x})
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return each(b, len(list), "{}", func(i int) error {
		name(b, list[i].name)
		if err := encode(b, list[i].value, never); err != nil {
			return fmt.Errorf("%s: %w", list[i].name, err)
		}
		return nil
	})
}

// nameOf returns what a key of a map is called: in words of its own, or as the string that it is.
func nameOf(k reflect.Value) (string, error) {
	if x, ok := addressable(k).Addr().Interface().(encoding.TextMarshaler); ok {
		text, err := x.MarshalText()
		return string(text), err
	}
	if k.Kind() != reflect.String {
		return "", fmt.Errorf("a map of %v, which no file has", k.Type())
	}
	return k.String(), nil
}

// object writes a struct.
func object(b *bytes.Buffer, v reflect.Value) error {
	var list []field
	for _, f := range shapeOf(v.Type()).fields {
		x, ok := f.of(v, false)
		if ok && !absent(x) && !(x.IsZero() && (f.omit || f.never)) {
			list = append(list, f)
		}
	}
	return each(b, len(list), "{}", func(i int) error {
		name(b, list[i].key)
		x, _ := list[i].of(v, false)
		if err := encode(b, x, list[i].never); err != nil {
			return fmt.Errorf("%s: %w", list[i].key, err)
		}
		return nil
	})
}

// absent reports whether a value is nil.
func absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
		return v.IsNil()
	}
	return false
}

// each writes n items in brackets.
func each(b *bytes.Buffer, n int, brackets string, item func(i int) error) error {
	b.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := item(i); err != nil {
			return err
		}
	}
	b.WriteByte(brackets[1])
	return nil
}

// name writes a key.
func name(b *bytes.Buffer, s string) {
	text, _ := json.Marshal(s) // of a string: cannot fail
	b.Write(append(text, ':'))
}
