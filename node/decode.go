package node

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/vxswitch/vxswitch/frame"
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
	text  []byte
	at    map[string]int // by key
	errs  Errors
	has   map[string]bool // keys that errs are about
	wrong map[string]bool // keys of values that are wrong, and of what they are in
	more  int             // errors beyond maxErrors
}

// maxErrors is how many errors are told, one by one.
const maxErrors = 1000

// fail notes what is wrong with the value at a key. The first thing counts: others follow from
// it.
func (s *source) fail(key, format string, args ...any) {
	s.note(key, fmt.Sprintf(format, args...))
	if s.wrong == nil {
		s.wrong = map[string]bool{}
	}
	for k := key; k != "" && !s.wrong[k]; k = above(k) {
		s.wrong[k] = true
	}
}

// note notes an error at a key, or at the nearest one above that is in the file.
func (s *source) note(key, text string) {
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
	e := &Error{Key: key, Text: text}
	for k := key; ; k = above(k) {
		if at, ok := s.at[k]; ok {
			e.Line, e.Column = position(s.text, at)
			break
		}
		if above(k) == "" {
			break
		}
	}
	s.errs = append(s.errs, e)
}

// above returns the key of what a value is in, "" for the whole configuration.
func above(key string) string { return key[:max(strings.LastIndexAny(key, ".["), 0)] }

// position returns the line and column of an offset, both from 1.
func position(text []byte, at int) (line, column int) {
	before := text[:min(at, len(text))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// err returns Errors in the order of the file, or nil.
func (s *source) err() error {
	if len(s.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(s.errs, func(a, b *Error) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	if s.more > 0 {
		s.errs = append(s.errs, &Error{Text: fmt.Sprintf("and %d more", s.more)})
	}
	return s.errs
}

// decode fills to, a pointer to a configuration, with what is in the text: JSON, with comments
// and a comma after the last of a list. Keys that there are not, or twice, and values of the
// wrong type are noted; the rest is filled in.
func (s *source) decode(to any) bool {
	s.at = map[string]int{}
	v, err := hujson.Value{}, error(nil)
	if err = shallow(s.text); err == nil {
		v, err = hujson.Parse(s.text)
	}
	if err != nil {
		e := &Error{Text: err.Error()}
		if n, _ := fmt.Sscanf(e.Text, "hujson: line %d, column %d:", &e.Line, &e.Column); n == 2 {
			_, e.Text, _ = strings.Cut(e.Text, ": ")
			_, e.Text, _ = strings.Cut(e.Text, ": ")
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			e.Text = "the file ends in the middle"
		}
		s.errs = append(s.errs, e)
		return false
	}
	s.fill(&v, "", reflect.ValueOf(to).Elem(), false)
	return true
}

// maxDepth is far deeper than a configuration is.
const maxDepth = 100

// shallow reports whether lists and objects are in each other deeper than a parser's stack likes.
// What is in strings and comments opens and closes nothing.
func shallow(text []byte) error {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(text[i:], []byte("//")):
			i = after(text, i+2, "\n")
		case bytes.HasPrefix(text[i:], []byte("/*")):
			i = after(text, i+2, "*/")
		}
		if depth > maxDepth {
			return fmt.Errorf("lists and objects are in each other more than %d deep", maxDepth)
		}
	}
	return nil
}

// after returns where what ends that begins at i or later: the end of the text without it.
func after(text []byte, i int, what string) int {
	n := bytes.Index(text[i:], []byte(what))
	if n < 0 {
		return len(text)
	}
	return i + n + len(what) - 1
}

// fill sets to to a value of the file. Where never is set, a duration of 0 is a negative one: it
// stands for never, and leaving the key out for the default.
func (s *source) fill(v *hujson.Value, key string, to reflect.Value, never bool) {
	s.at[key] = v.StartOffset
	kind := v.Value.Kind()
	if kind == 'n' {
		s.fail(key, "null; leave the key out instead")
		return
	}
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		s.fill(v, key, to.Elem(), never)
		return
	}
	switch x := to.Addr().Interface().(type) {
	case *Config:
	case json.Unmarshaler:
		w := v.Clone()
		w.Minimize()
		if err := x.UnmarshalJSON(w.Pack()); err != nil {
			s.fail(key, "%v", err)
		}
		return
	case encoding.TextUnmarshaler:
		if !s.want(v, key, '"') {
			return
		}
		if err := x.UnmarshalText([]byte(s.literal(v).String())); err != nil {
			switch x.(type) {
			case *netip.Addr:
				err = fmt.Errorf("%s; wanted is an IP address such as 10.0.0.1", s.shown(v))
			case *netip.Prefix:
				err = fmt.Errorf("%s; wanted is an IP address with a length, such as 10.0.0.1/24", s.shown(v))
			}
			s.fail(key, "%s", strings.TrimPrefix(err.Error(), "frame: "))
		}
		return
	case *time.Duration:
		d, err := time.ParseDuration(s.literal(v).String())
		if kind != '"' || err != nil || d < 0 {
			s.fail(key, "%s; wanted is a duration such as 300s", s.shown(v))
		} else if *x = d; d == 0 && never {
			*x = -1
		}
		return
	}
	switch to.Kind() {
	case reflect.Struct:
		if s.want(v, key, '{') {
			s.fields(v.Value.(*hujson.Object), key, to)
		}
	case reflect.Slice:
		if !s.want(v, key, '[') {
			return
		}
		list := v.Value.(*hujson.Array).Elements
		to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
		for i := range list {
			s.fill(&list[i], fmt.Sprintf("%s[%d]", key, i), to.Index(i), never)
		}
	case reflect.Map:
		if !s.want(v, key, '{') {
			return
		}
		to.Set(reflect.MakeMap(to.Type()))
		for i := range v.Value.(*hujson.Object).Members {
			m := &v.Value.(*hujson.Object).Members[i]
			x, name := reflect.New(to.Type().Elem()).Elem(), s.literal(&m.Name).String()
			if to.MapIndex(reflect.ValueOf(name)).IsValid() {
				s.at[join(key, name)] = m.Name.StartOffset
				s.fail(join(key, name), "the key is there twice")
				continue
			}
			s.fill(&m.Value, join(key, name), x, never)
			to.SetMapIndex(reflect.ValueOf(name), x)
		}
	case reflect.String:
		if s.want(v, key, '"') {
			to.SetString(s.literal(v).String())
		}
	case reflect.Bool:
		if s.want(v, key, 't') {
			to.SetBool(s.literal(v).Bool())
		}
	default:
		if s.want(v, key, '0') {
			s.number(string(s.literal(v)), key, to)
		}
	}
}

// literal returns a string, number, true or false; "" of what is none.
func (s *source) literal(v *hujson.Value) hujson.Literal {
	l, _ := v.Value.(hujson.Literal)
	return l
}

var kinds = map[hujson.Kind]string{'"': "a string", '0': "a number", 't': "true or false", 'f': "true or false", '{': "an object", '[': "a list"}

func (s *source) want(v *hujson.Value, key string, k hujson.Kind) bool {
	if kinds[v.Value.Kind()] != kinds[k] {
		s.fail(key, "%s; wanted is %v", s.shown(v), kinds[k])
		return false
	}
	return true
}

// shown is a value as the file has it, if it is short.
func (s *source) shown(v *hujson.Value) string {
	if l := s.literal(v); l != nil && len(l) <= 60 {
		return string(l)
	}
	return kinds[v.Value.Kind()]
}

var vniType = reflect.TypeFor[frame.VNI]()

func (s *source) number(text, key string, to reflect.Value) {
	if to.CanUint() {
		n, err := strconv.ParseUint(text, 10, 64)
		if limit := uint64(math.MaxUint64) >> (64 - to.Type().Bits()); err != nil || n > limit {
			if to.Type() == vniType {
				limit = uint64(frame.MaxVNI)
			}
			s.fail(key, "%s; allowed are 0 to %d", text, limit)
			return
		}
		to.SetUint(n)
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || to.OverflowInt(n) {
		s.fail(key, "%s; wanted is a whole number in digits, up to %d", text, int64(math.MaxInt64)>>(64-to.Type().Bits()))
		return
	}
	to.SetInt(n)
}

// was says what to write for keys of earlier versions.
var was = map[string]string{
	"evict":   `is now refuse, which says the opposite: write "refuse": true for "evict": false`,
	"offload": `is now noOffload, which says the opposite: write "noOffload": true for "offload": false`,
}

// fields fills a struct, the fields of structs embedded in it included.
func (s *source) fields(o *hujson.Object, key string, to reflect.Value) {
	known, seen := map[string]field{}, map[string]bool{}
	for _, f := range fieldsOf(to) {
		known[f.key] = f
	}
	for i := range o.Members {
		m := &o.Members[i]
		name := s.literal(&m.Name).String()
		k := join(key, name)
		f, ok := known[name]
		if ok && !seen[name] {
			s.fill(&m.Value, k, f.value, f.never)
			seen[name] = true
			continue
		}
		s.at[k] = m.Name.StartOffset
		switch {
		case ok:
			s.note(k, "the key is there twice")
		case was[name] != "":
			s.note(k, was[name])
		default:
			s.note(k, "there is no such key; allowed are "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	for name, f := range known {
		if !seen[name] && !f.omit && f.value.Type() == vniType { // 0 is one
			s.fail(join(key, name), "needed")
		}
	}
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

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
