package conf

import (
	"reflect"
	"strconv"
	"strings"
)

// Join returns the key of what is called name in the value at a key.
func Join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// Key returns the key of a field in a type: storm.unknown for Storm.UnknownUnicast. What has
// none has that of what it is in.
func Key(t reflect.Type, path string) (key string) {
	for path != "" {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			break
		}
		name, rest := path, ""
		if i := strings.IndexAny(path, ".["); i >= 0 {
			name, rest = path[:i], path[i:]
		}
		f, _ := t.FieldByName(name)
		word, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if word == "-" || word == "" && !f.Anonymous {
			break
		}
		if t = f.Type; word != "" {
			key = Join(key, word)
		}
		for strings.HasPrefix(rest, "[") {
			in, err := strconv.QuotedPrefix(rest[1:])
			if err == nil { // of a map
				word, _ := strconv.Unquote(in)
				key = Join(key, word)
			} else {
				in, _, _ = strings.Cut(rest[1:], "]")
				key += "[" + in + "]"
			}
			rest = strings.TrimPrefix(rest[1+len(in):], "]")
		}
		path = strings.TrimPrefix(rest, ".")
	}
	return key
}

// A field is one setting of a struct.
type field struct {
	key   string
	value reflect.Value
	never bool // a duration of 0 is never, and its field negative
	omit  bool // where it is zero
}

// fieldsOf returns the settings of a struct, and of structs embedded in it, in their order.
// Of two with one key, only the outer one is a setting.
func fieldsOf(v reflect.Value) (list []field) {
	for _, f := range reflect.VisibleFields(v.Type()) {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key != "" && key != "-" {
			list = append(list, field{key, v.FieldByIndex(f.Index), f.Tag.Get("zero") == "never", strings.Contains(options, "omit")})
		}
	}
	return list
}
