package conf

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/vxswitch/vxswitch/setting"
)

// Join returns the key of a setting in the value at another key.
func Join(key, in string) string {
	if key == "" || in == "" || in[0] == '[' {
		return key + in
	}
	return key + "." + in
}

// Keyed has errors of settings of type C name their keys in a file, in the value at a key.
func Keyed[C any](key string, err error) error {
	var errs setting.Errors
	errors.As(err, &errs)
	for _, e := range errs {
		if e.Config != "" {
			e.Config, e.Path = "", Join(key, Key(reflect.TypeFor[C](), e.Path))
		}
	}
	return err
}

// member returns the key of a name in the object at a key: labels.a, but labels["10.0.0.1"].
func member(key, name string) string {
	special := func(c rune) bool { return !unicode.In(c, unicode.L, unicode.N) && c != '_' && c != '-' }
	if name == "" || strings.ContainsFunc(name, special) {
		return key + "[" + strconv.Quote(name) + "]"
	}
	return Join(key, name)
}

// cut splits a key, or the path of a field, after its first step. For a step in a list it returns the index, and
// "" as the name.
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

// parent returns the key of the value around the one at a key, "" for the whole configuration.
func parent(key string) string {
	if strings.HasSuffix(key, `"]`) {
		return key[:max(strings.LastIndex(key, `["`), 0)]
	}
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}

// Key returns the key of a field of a type by its path in Go: storm.unknown for Storm.UnknownUnicast. A field without
// a key has that of the struct around it.
func Key(t reflect.Type, path string) (key string) {
	for path != "" && t != nil {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		name, index, rest := cut(path)
		switch t.Kind() {
		case reflect.Slice:
			key, t = key+"["+index+"]", t.Elem()
		case reflect.Map:
			key, t = member(key, name), t.Elem()
		case reflect.Struct:
			f, _ := t.FieldByName(name)
			word := keyOf(f)
			if word == "" && !f.Anonymous {
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

// A Field is a setting of a struct.
type Field struct {
	reflect.StructField
	Key string
}

// keyOf returns the key in the tag of a field.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.TrimPrefix(key, "-")
}

// omit reports whether the setting is left out of a file if it is zero.
func (f *Field) omit() bool { return strings.Contains(f.Tag.Get("json"), ",omit") }

// never reports whether the setting is a duration of which 0s in a file means never.
func (f *Field) never() bool { return f.Tag.Get("zero") == "never" }

// A shape is the settings of a type.
type shape struct {
	fields []Field
	byKey  map[string]int
	keys   string // all keys, for errors
}

var shapes sync.Map // *shape by reflect.Type

// Fields returns the settings of a struct in their order, those of structs embedded without a key included. If two
// have the same key, only the outer one is a setting.
func Fields(t reflect.Type) []Field { return shapeOf(t).fields }

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := &shape{byKey: map[string]int{}}
	var keys []string
	for _, f := range reflect.VisibleFields(t) {
		key := keyOf(f)
		if key == "" || !f.IsExported() || !promoted(t, f.Index) {
			continue
		}
		if i, twice := s.byKey[key]; !twice {
			s.byKey[key] = len(s.fields)
			s.fields = append(s.fields, Field{f, key})
			keys = append(keys, key)
		} else if len(f.Index) < len(s.fields[i].Index) {
			s.fields[i] = Field{f, key}
		}
	}
	slices.Sort(keys)
	s.keys = strings.Join(keys, ", ")
	shapes.Store(t, s)
	return s
}

// promoted reports whether a field belongs to the outer struct in a file: no struct on the way to it has a key or is
// embedded by pointer.
func promoted(t reflect.Type, index []int) bool {
	for n := 1; n < len(index); n++ {
		if in := t.FieldByIndex(index[:n]); keyOf(in) != "" || in.Type.Kind() == reflect.Pointer {
			return false
		}
	}
	return true
}
