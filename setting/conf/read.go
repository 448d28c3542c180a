package conf

import (
	"bytes"
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

// Read fills to, a pointer to a struct, with what is in a text, and reports what is wrong with it: keys
// that there are not, or twice, and values of the wrong type; the rest is filled in. was says what to
// write for keys of earlier versions. The error is of type [Errors]: the text is no JSON.
func Read(text []byte, to any, was map[string]string) (*Report, error) {
	r := &Report{text: text, was: was, at: map[string]int{}}
	v, err := hujson.Value{}, shallow(text)
	if err == nil {
		v, err = hujson.Parse(text)
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
		return nil, Errors{e}
	}
	r.object(&v, "", reflect.ValueOf(to).Elem())
	return r, nil
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
func (r *Report) fill(v *hujson.Value, key string, to reflect.Value, never bool) {
	r.at[key] = v.StartOffset
	kind := v.Value.Kind()
	if kind == 'n' {
		r.Fail(key, "null; leave the key out instead")
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
		if err := x.UnmarshalJSON(w.Pack()); err != nil {
			r.Fail(key, "%v", err)
		}
		return
	case encoding.TextUnmarshaler:
		if !r.want(v, key, '"') {
			return
		}
		if err := x.UnmarshalText([]byte(r.literal(v).String())); err != nil {
			switch x.(type) {
			case *netip.Addr:
				err = fmt.Errorf("%s; wanted is an IP address such as 10.0.0.1", r.shown(v))
			case *netip.Prefix:
				err = fmt.Errorf("%s; wanted is an IP address with a length, such as 10.0.0.1/24", r.shown(v))
			}
			r.Fail(key, "%s", strings.TrimPrefix(err.Error(), "frame: "))
		}
		return
	case *time.Duration:
		d, err := time.ParseDuration(r.literal(v).String())
		if kind != '"' || err != nil || d < 0 {
			r.Fail(key, "%s; wanted is a duration such as 300s", r.shown(v))
		} else if *x = d; d == 0 && never {
			*x = -1
		}
		return
	}
	switch to.Kind() {
	case reflect.Struct:
		r.object(v, key, to)
	case reflect.Slice:
		if !r.want(v, key, '[') {
			return
		}
		list := v.Value.(*hujson.Array).Elements
		to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
		for i := range list {
			r.fill(&list[i], fmt.Sprintf("%s[%d]", key, i), to.Index(i), never)
		}
	case reflect.Map:
		if !r.want(v, key, '{') {
			return
		}
		to.Set(reflect.MakeMap(to.Type()))
		for i := range v.Value.(*hujson.Object).Members {
			m := &v.Value.(*hujson.Object).Members[i]
			x, name := reflect.New(to.Type().Elem()).Elem(), r.literal(&m.Name).String()
			if to.MapIndex(reflect.ValueOf(name)).IsValid() {
				r.at[Join(key, name)] = m.Name.StartOffset
				r.Fail(Join(key, name), "the key is there twice")
				continue
			}
			r.fill(&m.Value, Join(key, name), x, never)
			to.SetMapIndex(reflect.ValueOf(name), x)
		}
	case reflect.String:
		if r.want(v, key, '"') {
			to.SetString(r.literal(v).String())
		}
	case reflect.Bool:
		if r.want(v, key, 't') {
			to.SetBool(r.literal(v).Bool())
		}
	default:
		if r.want(v, key, '0') {
			r.number(string(r.literal(v)), key, to)
		}
	}
}

// literal returns a string, number, true or false; "" of what is none.
func (r *Report) literal(v *hujson.Value) hujson.Literal {
	l, _ := v.Value.(hujson.Literal)
	return l
}

var kinds = map[hujson.Kind]string{'"': "a string", '0': "a number", 't': "true or false", 'f': "true or false", '{': "an object", '[': "a list"}

func (r *Report) want(v *hujson.Value, key string, k hujson.Kind) bool {
	if kinds[v.Value.Kind()] != kinds[k] {
		r.Fail(key, "%s; wanted is %v", r.shown(v), kinds[k])
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

func (r *Report) number(text, key string, to reflect.Value) {
	if to.CanUint() {
		n, err := strconv.ParseUint(text, 10, 64)
		if limit := uint64(math.MaxUint64) >> (64 - to.Type().Bits()); err != nil || n > limit {
			if to.Type() == vniType {
				limit = uint64(frame.MaxVNI)
			}
			r.Fail(key, "%s; allowed are 0 to %d", text, limit)
			return
		}
		to.SetUint(n)
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || to.OverflowInt(n) {
		r.Fail(key, "%s; wanted is a whole number in digits, up to %d", text, int64(math.MaxInt64)>>(64-to.Type().Bits()))
		return
	}
	to.SetInt(n)
}

// object fills a struct, the fields of structs embedded in it included.
func (r *Report) object(v *hujson.Value, key string, to reflect.Value) {
	r.at[key] = v.StartOffset
	if !r.want(v, key, '{') {
		return
	}
	o := v.Value.(*hujson.Object)
	known, seen := map[string]field{}, map[string]bool{}
	for _, f := range fieldsOf(to) {
		known[f.key] = f
	}
	for i := range o.Members {
		m := &o.Members[i]
		name := r.literal(&m.Name).String()
		k := Join(key, name)
		f, ok := known[name]
		if ok && !seen[name] {
			r.fill(&m.Value, k, f.value, f.never)
			seen[name] = true
			continue
		}
		r.at[k] = m.Name.StartOffset
		switch {
		case ok:
			r.note(k, "the key is there twice")
		case r.was[name] != "":
			r.note(k, r.was[name])
		default:
			r.note(k, "there is no such key; allowed are "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	for name, f := range known {
		if !seen[name] && !f.omit && f.value.Type() == vniType { // 0 is one
			r.Fail(Join(key, name), "needed")
		}
	}
}
