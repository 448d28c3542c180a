package conf

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"time"
)

// Write returns a struct, or what x points to, in JSON: what [Read] reads.
func Write(x any) ([]byte, error) {
	var b bytes.Buffer
	err := object(&b, reflect.Indirect(reflect.ValueOf(x)))
	return b.Bytes(), err
}

// encode writes a value as Report.fill reads it.
func encode(b *bytes.Buffer, v reflect.Value, never bool) (err error) {
	switch x := v.Interface().(type) {
	case time.Duration:
		if x < 0 && never {
			x = 0
		}
		b.WriteString(`"` + x.String() + `"`)
		return nil
	case json.Marshaler, encoding.TextMarshaler:
		text, err := json.Marshal(x)
		b.Write(text)
		return err
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(b, v.Elem(), never)
	case reflect.Struct:
		return object(b, v)
	case reflect.Slice:
		return each(b, v.Len(), "[]", func(i int) error { return encode(b, v.Index(i), never) })
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) })
		return each(b, len(keys), "{}", func(i int) error {
			name(b, keys[i].String())
			return encode(b, v.MapIndex(keys[i]), never)
		})
	}
	text, err := json.Marshal(v.Interface())
	b.Write(text)
	return err
}

// object writes a struct.
func object(b *bytes.Buffer, v reflect.Value) error {
	list := slices.DeleteFunc(fieldsOf(v), func(f field) bool { return f.omit && f.value.IsZero() })
	return each(b, len(list), "{}", func(i int) error {
		name(b, list[i].key)
		return encode(b, list[i].value, list[i].never)
	})
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
