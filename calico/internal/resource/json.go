package resource

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/vxswitch/vxswitch/internal/jsontype"
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
		return fmt.Errorf("%s: must be %s", is, jsontype.Allowed(typ.Type))
	case err != nil && strings.HasPrefix(err.Error(), "json: unknown field "):
		return errors.New(strings.TrimPrefix(err.Error(), "json: unknown ") + " is unknown")
	}
	return err
}
