package node

import (
	"errors"
	"reflect"
	"strings"

	"github.com/vxswitch/vxswitch/setting"
)

// What the packages refuse whose settings these are is asked of them, with the settings that
// they get when the configuration is applied. The error is theirs.

// asks asks about a part of the configuration that is of the type of at. A value in it that could not
// be read is zero, and what is wrong with the part as a whole follows from a value that is wrong, if
// there is one.
func (k *checker) asks(key string, at any, about func() error) {
	err := about()
	var errs setting.Errors
	if err != nil && !errors.As(err, &errs) && !k.wrong[key] {
		_, text, _ := strings.Cut(err.Error(), ": ")
		k.fail(key, "%s", text)
	}
	for _, e := range errs {
		of := key
		if name := keyOf(reflect.TypeOf(at), e.Field); name != "" {
			of = join(key, name)
		}
		k.fail(of, "%s", e.Text)
	}
}

// keyOf returns the key of a field in a type: storm.unknown for Storm.UnknownUnicast. What has
// none has that of what it is in.
func keyOf(t reflect.Type, path string) (key string) {
	for name := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(name, "[")
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			break
		}
		f, _ := t.FieldByName(name)
		word, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if word == "-" || word == "" && !f.Anonymous {
			break
		}
		if t = f.Type; word != "" {
			key = join(key, word)
		}
		if name, quoted := strings.CutPrefix(index, `"`); quoted { // of a map
			name, index, indexed = strings.Cut(name, `"]`)
			key, index, indexed = join(key, name), strings.TrimPrefix(index, "["), indexed && index != ""
		}
		if indexed {
			key += "[" + index
		}
	}
	return key
}
