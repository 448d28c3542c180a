package node

import (
	"encoding"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/setting/conf"
)

// A value of an enum that has no word is wrong, wherever it is: in Go anybody can write one.
func TestEnumsWrong(t *testing.T) {
	const none = 250
	c := parse(t, `{
		"tunnels": [{"name": "vx", "local": "192.0.2.1"}],
		"ports": [{"name": "tap0"}],
		"segments": [{"vni": 1, "neighbours": {}, "members": [{"port": "tap0"}]}]
	}`)
	tested := 0
	var walk func(key string, v reflect.Value)
	walk = func(key string, v reflect.Value) {
		if _, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
			if v.Kind() != reflect.Uint8 {
				return
			}
			tested++
			was := v.Uint()
			v.SetUint(none)
			defer v.SetUint(was)
			var errs setting.Errors
			errors.As(c.Check(), &errs)
			i := slices.IndexFunc(errs, func(e *setting.Error) bool { return e.Path == key })
			if i < 0 {
				t.Errorf("%s may be %v(%d)", key, v.Type(), none)
			} else if text := errs[i].Error(); strings.Contains(text, "one of the ") {
				t.Errorf("%q does not say what is allowed", text)
			}
			return
		}
		switch v.Kind() {
		case reflect.Pointer:
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
				defer v.SetZero()
			}
			walk(key, v.Elem())
		case reflect.Slice:
			if v.Len() == 0 {
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
				defer v.SetZero()
			}
			walk(key+"[0]", v.Index(0))
		case reflect.Struct:
			if object(v.Type()) == nil {
				return
			}
			for _, f := range reflect.VisibleFields(v.Type()) {
				if word := conf.Key(v.Type(), f.Name); word != "" && !f.Anonymous {
					walk(conf.Join(key, word), v.FieldByIndex(f.Index))
				}
			}
		}
	}
	walk("", reflect.ValueOf(c).Elem())
	if tested < 15 {
		t.Errorf("only %d enums", tested)
	}
}
