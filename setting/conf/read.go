package conf

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/vxswitch/vxswitch/frame"
)

// Read fills to, a pointer to a struct, with what is in a text, and reports what is wrong with it: keys
// that there are not, or twice, and values of the wrong type; the rest is filled in, up to where the Report is full. was says what to
// write for keys of earlier versions. The error is of type [Errors]: the text is no JSON. The text must
// not change for as long as there is the Report.
func Read(text []byte, to any, was map[string]string) (*Report, error) {
	v, err := parse(text)
	if err != nil {
		return nil, Errors{err}
	}
	r := &Report{text: text, root: v, was: was}
	r.object(v, "", reflect.ValueOf(to).Elem())
	return r, nil
}

// parse returns what is in a text.
func parse(text []byte) (*hujson.Value, *Error) {
	at, err := shallow(text)
	if err == nil {
		at, err = valid(text)
	}
	if err != nil {
		line, column := position(text, at)
		return nil, &Error{Line: line, Column: column, Text: err.Error()}
	}
	v, err := hujson.Parse(text)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		if x, e := hujson.Parse(append(slices.Clip(text), '\n')); e == nil { // a comment at its end
			return &x, nil
		}
	}
	if err == nil {
		return &v, nil
	}
	e := &Error{Text: err.Error()}
	if n, _ := fmt.Sscanf(e.Text, "hujson: line %d, column %d:", &e.Line, &e.Column); n == 2 {
		_, e.Text, _ = strings.Cut(e.Text, ": ")
		_, e.Text, _ = strings.Cut(e.Text, ": ")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		e.Text = "the file ends in the middle"
	}
	e.Text = oneLine(e.Text)
	return nil, e
}

// valid returns where a text is no UTF-8 (RFC 8259, section 8.1).
func valid(text []byte) (at int, err error) {
	if utf8.Valid(text) {
		return 0, nil
	}
	for {
		c, n := utf8.DecodeRune(text[at:])
		if c == utf8.RuneError && n == 1 {
			return at, errors.New("is no UTF-8")
		}
		at += n
	}
}

// maxDepth is far deeper than a configuration is.
const maxDepth = 100

// shallow returns where lists and objects are in each other deeper than a parser's stack likes.
// What is in strings and comments opens and closes nothing.
func shallow(text []byte) (at int, err error) {
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
			return i, fmt.Errorf("lists and objects are in each other more than %d deep", maxDepth)
		}
	}
	return 0, nil
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
func (r *Report) fill(v *hujson.Value, key string, to reflect.Value, never bool) {
	kind := v.Value.Kind()
	if kind == 'n' {
		r.fail(key, v, "null; leave the key out instead")
		return
	}
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		r.fill(v, key, to.Elem(), never)
		return
	}
	switch x := to.Addr().Interface().(type) {
	case json.Unmarshaler:
		w := v.Clone()
		w.Minimize()
		if err := x.UnmarshalJSON(w.Pack()); err != nil && !r.within(key, err) {
			r.fail(key, v, "%v", err)
		}
		return
	case encoding.TextUnmarshaler:
		if r.want(v, key, '"') {
			if err := fromText(x, r.literal(v).String(), r.shown(v)); err != nil {
				r.fail(key, v, "%v", err)
			}
		}
		return
	case *time.Duration:
		d, err := time.ParseDuration(r.literal(v).String())
		if kind != '"' || err != nil || d < 0 {
			r.fail(key, v, "%s; wanted is a duration such as 300s", r.shown(v))
		} else if *x = d; d == 0 && never {
			*x = -1
		}
		return
	}
	switch {
	case to.Kind() == reflect.Struct:
		r.object(v, key, to)
	case to.Kind() == reflect.Slice || to.Kind() == reflect.Array:
		r.list(v, key, to, never)
	case to.Kind() == reflect.Map:
		r.members(v, key, to, never)
	case !readable(to):
		r.fail(key, v, "a value of type %v cannot be in a file", to.Type())
	case to.Kind() == reflect.String:
		if r.want(v, key, '"') {
			to.SetString(r.literal(v).String())
		}
	case to.Kind() == reflect.Bool:
		if r.want(v, key, 't') {
			to.SetBool(r.literal(v).Bool())
		}
	case r.want(v, key, '0'):
		r.number(v, key, to)
	}
}

// list fills a slice, or an array whose length the file is to have.
func (r *Report) list(v *hujson.Value, key string, to reflect.Value, never bool) {
	if !r.want(v, key, '[') {
		return
	}
	list := v.Value.(*hujson.Array).Elements
	if to.Kind() == reflect.Slice {
		to.Set(reflect.MakeSlice(to.Type(), 0, min(len(list), 1024))) // far more only for what is right
	} else if len(list) != to.Len() {
		r.fail(key, v, "a list of %d; wanted is one of %d", len(list), to.Len())
		return
	}
	for i := 0; i < len(list) && !r.more; i++ {
		if to.Kind() == reflect.Slice {
			to.Grow(1)
			to.SetLen(i + 1)
		}
		r.fill(&list[i], key+"["+strconv.Itoa(i)+"]", to.Index(i), never)
	}
}

// maxName is how long a name in a file is at most. Every error in what has a name has that name.
const maxName = 255

// members fills a map.
func (r *Report) members(v *hujson.Value, key string, to reflect.Value, never bool) {
	if !r.want(v, key, '{') {
		return
	}
	to.Set(reflect.MakeMap(to.Type()))
	list := v.Value.(*hujson.Object).Members
	for i := 0; i < len(list) && !r.more; i++ {
		m := &list[i]
		name, ok := r.name(m, key)
		if !ok {
			continue
		}
		in, k := member(key, name), reflect.New(to.Type().Key())
		if x, ok := k.Interface().(encoding.TextUnmarshaler); ok {
			if err := fromText(x, name, r.shown(&m.Name)); err != nil {
				r.fail(in, &m.Name, "%v", err)
				continue
			}
		} else if k.Elem().Kind() == reflect.String {
			k.Elem().SetString(name)
		} else {
			r.fail(key, v, "a value of type %v cannot be in a file", to.Type())
			return
		}
		if to.MapIndex(k.Elem()).IsValid() {
			r.fail(in, &m.Name, "the key is there twice")
			continue
		}
		x := reflect.New(to.Type().Elem()).Elem()
		r.fill(&m.Value, in, x, never)
		to.SetMapIndex(k.Elem(), x)
	}
}

// name returns what a member of the object at a key is called.
func (r *Report) name(m *hujson.ObjectMember, key string) (name string, ok bool) {
	name = r.literal(&m.Name).String()
	if len(name) > maxName {
		r.fail(member(key, name[:10]+"..."), &m.Name, "a key of %d bytes; allowed are up to %d", len(name), maxName)
	}
	return name, len(name) <= maxName
}

// fromText sets to to what a text, shown as the file has it, stands for.
func fromText(to encoding.TextUnmarshaler, text, shown string) error {
	err := to.UnmarshalText([]byte(text))
	if err == nil {
		return nil
	}
	switch to.(type) {
	case *netip.Addr:
		return fmt.Errorf("%s; wanted is an IP address such as 10.0.0.1", shown)
	case *netip.Prefix:
		return fmt.Errorf("%s; wanted is an IP address with a length, such as 10.0.0.1/24", shown)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "frame: "))
}

// literal returns a string, number, true or false; "" of what is none.
func (r *Report) literal(v *hujson.Value) hujson.Literal {
	l, _ := v.Value.(hujson.Literal)
	return l
}

var kinds = map[hujson.Kind]string{'"': "a string", '0': "a number", 't': "true or false", 'f': "true or false", '{': "an object", '[': "a list"}

func (r *Report) want(v *hujson.Value, key string, k hujson.Kind) bool {
	if kinds[v.Value.Kind()] != kinds[k] {
		r.fail(key, v, "%s; wanted is %v", r.shown(v), kinds[k])
		return false
	}
	return true
}

// shown is a value as the file has it, if it is short.
func (r *Report) shown(v *hujson.Value) string {
	if l := r.literal(v); l != nil && len(l) <= 60 {
		return string(l)
	}
	return kinds[v.Value.Kind()]
}

var vniType = reflect.TypeFor[frame.VNI]()

func (r *Report) number(v *hujson.Value, key string, to reflect.Value) {
	text := string(r.literal(v))
	switch bits := to.Type().Bits(); {
	case to.CanFloat():
		n, err := strconv.ParseFloat(text, bits)
		if err != nil {
			r.fail(key, v, "%s; wanted is a number of %d bits", r.shown(v), bits)
			return
		}
		to.SetFloat(n)
	case to.CanUint():
		n, err := strconv.ParseUint(text, 10, bits)
		if err != nil {
			limit := uint64(math.MaxUint64) >> (64 - bits)
			if to.Type() == vniType {
				limit = uint64(frame.MaxVNI)
			}
			r.fail(key, v, "%s; allowed are 0 to %d", r.shown(v), limit)
			return
		}
		to.SetUint(n)
	default:
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			r.fail(key, v, "%s; wanted is a whole number in digits, up to %d", r.shown(v), int64(math.MaxInt64)>>(64-bits))
			return
		}
		to.SetInt(n)
	}
}

// object fills a struct, the fields of structs embedded in it included.
func (r *Report) object(v *hujson.Value, key string, to reflect.Value) {
	if !r.want(v, key, '{') {
		return
	}
	o, s := v.Value.(*hujson.Object), shapeOf(to.Type())
	seen := make([]bool, len(s.fields))
	for i := 0; i < len(o.Members) && !r.more; i++ {
		m := &o.Members[i]
		name, ok := r.name(m, key)
		if !ok {
			continue
		}
		n, known := s.known[name]
		switch {
		case known && seen[n]:
			r.note(member(key, name), &m.Name, "the key is there twice")
		case known:
			f := &s.fields[n]
			x, _ := f.of(to, true)
			r.fill(&m.Value, member(key, name), x, f.never)
			seen[n] = true
		case r.was[name] != "":
			r.note(member(key, name), &m.Name, "%s", r.was[name])
		default:
			r.note(member(key, name), &m.Name, "there is no such key; allowed are %s", s.keys)
		}
	}
	for i, f := range s.fields {
		if !seen[i] && !f.omit && f.typ == vniType { // 0 is one
			r.fail(member(key, f.key), v, "needed")
		}
	}
}
