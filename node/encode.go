package node

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"time"
)

// MarshalJSON writes what [Parse] reads.
func (c Config) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := encode(&b, reflect.ValueOf(&c).Elem(), false)
	return b.Bytes(), err
}

// UnmarshalJSON reads what MarshalJSON writes; see [Parse] for what else it reads. It does not
// check: [Config.Check] does.
func (c *Config) UnmarshalJSON(text []byte) error {
	s := &source{text: text}
	x := new(Config)
	s.decode(x)
	if err := s.err(); err != nil {
		return err
	}
	*c = *x
	return nil
}

// encode writes a value as fill reads it.
func encode(b *bytes.Buffer, v reflect.Value, never bool) (err error) {
	each := func(n int, brackets string, item func(i int) error) error {
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
	name := func(s string) {
		text, _ := json.Marshal(s) // of a string: cannot fail
		b.Write(append(text, ':'))
	}
	switch x := v.Interface().(type) {
	case Config:
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
		list := slices.DeleteFunc(fieldsOf(v), func(f field) bool { return f.omit && f.value.IsZero() })
		return each(len(list), "{}", func(i int) error {
			name(list[i].key)
			return encode(b, list[i].value, list[i].never)
		})
	case reflect.Slice:
		return each(v.Len(), "[]", func(i int) error { return encode(b, v.Index(i), never) })
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) })
		return each(len(keys), "{}", func(i int) error {
			name(keys[i].String())
			return encode(b, v.MapIndex(keys[i]), never)
		})
	}
	text, err := json.Marshal(v.Interface())
	b.Write(text)
	return err
}
