package node

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Error is one thing that is wrong with a configuration.
type Error struct {
	Line, Column int    // in the file, from 1; 0 when the configuration is from none
	Key          string // such as segments[0].flood[1]
	Text         string
}

// Error returns "12:7: segments[0].flood[1]: text", without what is not known.
func (e *Error) Error() string {
	s := e.Text
	if e.Key != "" {
		s = e.Key + ": " + s
	}
	if e.Line > 0 {
		s = fmt.Sprintf("%d:%d: %s", e.Line, e.Column, s)
	}
	return s
}

// Errors is all that is wrong with a configuration, in the order of the file.
type Errors []*Error

// Error returns one line for each.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// A source is where the values of a configuration are in its text.
type source struct {
	text []byte
	at   map[string]int // by key
	errs Errors
	has  map[string]bool // keys that errs are about
	more int             // errors beyond maxErrors
}

// maxErrors is how many errors are told, one by one.
const maxErrors = 1000

// fail notes what is wrong at a key, or at the nearest one above that is in the file. The
// first thing that is wrong with a value counts: others follow from it.
func (s *source) fail(key, format string, args ...any) {
	switch {
	case s.has[key]:
		return
	case len(s.errs) >= maxErrors:
		s.more++
		return
	case s.has == nil:
		s.has = map[string]bool{}
	}
	s.has[key] = true
	e := &Error{Key: key, Text: fmt.Sprintf(format, args...)}
	for k := key; ; {
		if at, ok := s.at[k]; ok {
			e.Line, e.Column = position(s.text, at)
			break
		}
		i := max(strings.LastIndexByte(k, '.'), strings.LastIndexByte(k, '['))
		if i < 0 {
			break
		}
		k = k[:i]
	}
	s.errs = append(s.errs, e)
}

// position returns the line and column of an offset, both from 1.
func position(text []byte, at int) (line, column int) {
	before := text[:min(at, len(text))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// sorted returns the errors in the order of the file.
func (s *source) sorted() Errors {
	slices.SortStableFunc(s.errs, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	if s.more > 0 {
		s.errs = append(s.errs, &Error{Text: fmt.Sprintf("and %d more", s.more)})
	}
	return s.errs
}

// decode fills to, a pointer to a configuration, with what is in the text. Keys that there
// are not, or twice, and values of the wrong type are noted; the rest is filled in.
func (s *source) decode(to any) bool {
	s.at = map[string]int{}
	v, at, err := read(s.text)
	if err != nil {
		e := &Error{Text: err.Error()}
		e.Line, e.Column = position(s.text, at)
		s.errs = append(s.errs, e)
		return false
	}
	s.fill(v, "", reflect.ValueOf(to).Elem())
	return true
}

// A choice is a word, or a number and a word, that has a type of its own.
type choice interface{ choose(v any) error }

func (s *source) fill(v *value, key string, to reflect.Value) {
	s.at[key] = v.at
	if v.is == isNull {
		s.fail(key, "null; leave the key out instead")
		return
	}
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		s.fill(v, key, to.Elem())
		return
	}
	switch x := to.Addr().Interface().(type) {
	case choice:
		if err := x.choose(v.token); err != nil || v.is == isObject || v.is == isArray {
			s.fail(key, "%v: %v", s.shown(v), err)
		}
		return
	case encoding.TextUnmarshaler:
		if !s.want(v, key, isString) {
			return
		}
		if err := x.UnmarshalText([]byte(v.token.(string))); err != nil {
			s.fail(key, "%s", strings.TrimPrefix(err.Error(), "frame: "))
		}
		return
	}
	if to.Type() == reflect.TypeFor[time.Duration]() && v.is == isString {
		d, err := time.ParseDuration(v.token.(string))
		if err != nil {
			s.fail(key, "%s; wanted is a duration such as 30s", s.shown(v))
		}
		to.SetInt(int64(d))
		return
	}
	switch to.Kind() {
	case reflect.Struct:
		if s.want(v, key, isObject) {
			s.fields(v, key, to)
		}
	case reflect.Slice:
		if !s.want(v, key, isArray) {
			return
		}
		to.Set(reflect.MakeSlice(to.Type(), len(v.array), len(v.array)))
		for i, x := range v.array {
			s.fill(x, fmt.Sprintf("%s[%d]", key, i), to.Index(i))
		}
	case reflect.Map:
		if !s.want(v, key, isObject) {
			return
		}
		to.Set(reflect.MakeMap(to.Type()))
		for _, m := range v.object {
			x := reflect.New(to.Type().Elem()).Elem()
			s.fill(m.v, join(key, m.key), x)
			to.SetMapIndex(reflect.ValueOf(m.key), x)
		}
	case reflect.String:
		if s.want(v, key, isString) {
			to.SetString(v.token.(string))
		}
	case reflect.Bool:
		if s.want(v, key, isBool) {
			to.SetBool(v.token.(bool))
		}
	default:
		if s.want(v, key, isNumber) {
			s.number(v, key, to)
		}
	}
}

func (s *source) want(v *value, key string, k kindOf) bool {
	if v.is != k {
		s.fail(key, "%s; wanted is %v", s.shown(v), k)
		return false
	}
	return true
}

// shown is a value as the file has it, if it is short.
func (s *source) shown(v *value) string {
	if v.is == isObject || v.is == isArray || v.end-v.at > 60 {
		return v.is.String()
	}
	return string(s.text[v.at:v.end])
}

func (s *source) number(v *value, key string, to reflect.Value) {
	text := v.token.(json.Number).String()
	if to.CanUint() {
		n, err := strconv.ParseUint(text, 10, 64)
		if limit := uint64(math.MaxUint64) >> (64 - to.Type().Bits()); err != nil || n > limit {
			s.fail(key, "%s; allowed are 0 to %d", text, limit)
			return
		}
		to.SetUint(n)
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || to.OverflowInt(n) {
		s.fail(key, "%s; wanted is a whole number", text)
		return
	}
	to.SetInt(n)
}

// fields fills a struct, the fields of structs embedded in it included.
func (s *source) fields(v *value, key string, to reflect.Value) {
	known := map[string]reflect.Value{}
	gather(to, known)
	seen := map[string]bool{}
	for _, m := range v.object {
		k := join(key, m.key)
		f, ok := known[m.key]
		switch {
		case !ok:
			s.at[k] = m.at
			s.fail(k, "there is no such key; allowed are %s", names(known))
		case seen[m.key]:
			s.at[k] = m.at
			s.fail(k, "the key is there twice")
		default:
			s.fill(m.v, k, f)
		}
		seen[m.key] = true
	}
}

func gather(to reflect.Value, known map[string]reflect.Value) {
	for i := range to.NumField() {
		f := to.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			gather(to.Field(i), known)
		case name != "" && name != "-":
			known[name] = to.Field(i)
		}
	}
}

func names(known map[string]reflect.Value) string {
	var list []string
	for n := range known {
		list = append(list, n)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
