// Package jsontype says in plain words that JSON is not what a field takes: package encoding/json has the words of Go for that.
package jsontype

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Explain returns the value that an error of a text is about, or its kind if it is in a list, and what is allowed in its place.
func Explain(text []byte, err *json.UnmarshalTypeError) (value, allowed string) {
	value = err.Value
	if number, ok := strings.CutPrefix(value, "number "); ok {
		value = number
	} else if v := find(text, err.Field); v != nil {
		value = string(v)
	}
	return value, Allowed(err.Type)
}

// find returns the value of a field, whose names are in any case and may have dots in them, nil if there is none.
func find(text json.RawMessage, path string) json.RawMessage {
	if path == "" {
		return text
	}
	var all map[string]json.RawMessage
	json.Unmarshal(text, &all)
	for name, value := range all {
		head, rest := path, ""
		if n := len(name); n < len(path) && path[n] == '.' {
			head, rest = path[:n], path[n+1:]
		}
		if !strings.EqualFold(name, head) {
			continue
		}
		if v := find(value, rest); v != nil {
			return v
		}
	}
	return nil
}

// Allowed returns what JSON has for a type.
func Allowed(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float64, reflect.Float32:
		return "a number"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("a whole number, 0 to %d", uint64(1)<<t.Bits()-1)
	case reflect.Uint, reflect.Uint64:
		return "a whole number, 0 or more"
	}
	return "a whole number"
}
