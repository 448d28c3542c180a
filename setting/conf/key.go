package conf

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Join returns the key of what is at a second key in the value at the first.
func Join(key, in string) string {
	if key == "" || in == "" || in[0] == '[' {
		return key + in
	}
	return key + "." + in
}

// member returns the key of what is called name in the object at a key: labels.a, but
// labels["10.0.0.1"].
func member(key, name string) string {
	apart := func(c rune) bool { return !unicode.In(c, unicode.L, unicode.N) && c != '_' && c != '-' }
	if name == "" || strings.ContainsFunc(name, apart) {
		return key + "[" + strconv.Quote(name) + "]"
	}
	return Join(key, name)
}

// cut returns the first step of a key, or of the way to a field, and the others. In a list it is an
// index, and name is "".
func cut(key string) (name, index, rest string) {
	if !strings.HasPrefix(key, "[") {
		key = strings.TrimPrefix(key, ".")
		end := strings.IndexAny(key, ".[")
		if end < 0 {
			end = len(key)
		}
		return key[:end], "", key[end:]
	}
	in, err := strconv.QuotedPrefix(key[1:])
	if err == nil { // of a map
		name, _ = strconv.Unquote(in)
	} else {
		in, _, _ = strings.Cut(key[1:], "]")
		index = in
	}
	return name, index, strings.TrimPrefix(key[1+len(in):], "]")
}

// above returns the key of what a value is in, "" for the whole configuration.
func above(key string) string {
	if strings.HasSuffix(key, `"]`) {
		return key[:max(strings.LastIndex(key, `["`), 0)]
	}
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}

// Key returns the key of a field in a type: storm.unknown for Storm.UnknownUnicast. What has
// none has that of what it is in.
func Key(t reflect.Type, path string) (key string) {
	for path != "" && t != nil {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		name, index, rest := cut(path)
		switch t.Kind() {
		case reflect.Slice, reflect.Array:
			key += "[" + index + "]"
			t = t.Elem()
		case reflect.Map:
			if name == "" && index != "" {
				name = index
			}
			key, t = member(key, name), t.Elem()
		case reflect.Struct:
			f, _ := t.FieldByName(name)
			word, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if word == "-" || word == "" && !f.Anonymous {
				return key
			}
			if t = f.Type; word != "" {
				key = member(key, word)
			}
		default:
			return key
		}
		path = rest
	}
	return key
}

// A field is one setting of a struct.
type field struct {
	key   string
	index []int
	typ   reflect.Type
	never bool // a duration of 0 is never, and its field negative
	omit  bool // where it is zero
}

// of returns the setting in a struct. Embedded pointers that are nil are made, or it is not there.
func (f *field) of(v reflect.Value, made bool) (reflect.Value, bool) {
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !made {
					return v, false
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, true
}

// A shape is the settings of a type of structs.
type shape struct {
	fields []field
	known  map[string]int // their numbers by key
	keys   string         // all of them
}

var shapes sync.Map // of *shape by reflect.Type

// shapeOf returns the settings of a type of structs, and of structs embedded in it without a key, in
// their order. Of two with one key, only the outer one is a setting.
func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := &shape{known: map[string]int{}}
	for _, f := range reflect.VisibleFields(t) {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || key == "-" || !f.IsExported() || !promoted(t, f.Index) {
			continue
		}
		x := field{key, f.Index, f.Type, f.Tag.Get("zero") == "never", strings.Contains(options, "omit")}
		i, twice := s.known[key]
		switch {
		case !twice:
			s.known[key] = len(s.fields)
			s.fields = append(s.fields, x)
		case len(x.index) < len(s.fields[i].index):
			s.fields[i] = x
		}
	}
	var keys []string
	for key := range s.known {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	s.keys = strings.Join(keys, ", ")
	shapes.Store(t, s)
	return s
}

// promoted reports whether what a field is embedded in is no setting of its own, and can be made.
func promoted(t reflect.Type, index []int) bool {
	for n := 1; n < len(index); n++ {
		in := t.FieldByIndex(index[:n])
		if word, _, _ := strings.Cut(in.Tag.Get("json"), ","); word != "" || in.Type.Kind() == reflect.Pointer && !in.IsExported() {
			return false
		}
	}
	return true
}
