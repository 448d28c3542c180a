package flannel

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/vxswitch/vxswitch/internal/jsontype"
	"github.com/vxswitch/vxswitch/setting"
)

// text is a string in JSON that flannel reads without escapes.
type text string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) < 2 || b[0] != '"' || bytes.ContainsAny(b[1:len(b)-1], `\"`) {
		return wrong[text](b)
	}
	*t = text(b[1 : len(b)-1])
	return nil
}

// texts are what one name was given, more often than once if the JSON repeats it: the last counts, but none may be wrong.
type texts []text

// UnmarshalJSON implements [json.Unmarshaler].
func (t *texts) UnmarshalJSON(b []byte) error {
	var x text
	err := x.UnmarshalJSON(b)
	*t = append(*t, x)
	return err
}

// MarshalJSON implements [json.Marshaler].
func (t texts) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// String returns the last one.
func (t texts) String() string {
	if len(t) == 0 {
		return ""
	}
	return string(t[len(t)-1])
}

// wrong returns an error to which package json adds the name of the field.
func wrong[T any](value []byte) error {
	return &json.UnmarshalTypeError{Value: string(value), Type: reflect.TypeFor[T]()}
}

// decode reads an object. An error in a field names it, its value and what is allowed, as [setting.Errors].
func decode(b []byte, to any) error {
	err := json.Unmarshal(b, to)
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) {
		return err
	}
	value, allowed := jsontype.Explain(b, t)
	switch t.Type {
	case reflect.TypeFor[text]():
		value, allowed = t.Value, "a string without escapes"
	case reflect.TypeFor[address]():
		value, allowed = t.Value, "an address"
	}
	return setting.Errors{{Path: t.Field, Value: setting.Literal(clip(value, 200)), Allowed: allowed}}
}
