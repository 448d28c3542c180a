package resource

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// readable returns an error of package json in the words of errors of fields.
func readable(err error) error {
	var text *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &text):
		return fmt.Errorf("must be JSON: %w", err)
	case errors.As(err, &typ):
		is := "a " + typ.Value // and the number, if it is one
		if typ.Value == "array" || typ.Value == "object" {
			is = "an " + typ.Value
		}
		if typ.Field != "" {
			is = typ.Field + ": " + is
		}
		return fmt.Errorf("%s: must be %s", is, wanted(typ.Type))
	case err != nil && strings.HasPrefix(err.Error(), "json: unknown field "):
		return errors.New(strings.TrimPrefix(err.Error(), "json: unknown ") + " is unknown")
	}
	return err
}

// wanted is what JSON has for a type.
func wanted(t reflect.Type) string {
	switch k := t.Kind(); k {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("a whole number, 0 to %d", uint64(1)<<t.Bits()-1)
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float64, reflect.Float32:
		return "a number"
	default:
		return "a whole number"
	}
}
