package conf

import (
	"bytes"
	"encoding"
	"encoding/json"
	"math"
	"net/netip"
	"reflect"
	"strconv"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// Read fills to, a pointer to a struct, from a file and reports unknown and duplicate keys and values of the wrong
// type; the rest is filled in until the Report is full. A "$schema" at the top, for editors, is ignored. renamed has the advice for keys of earlier versions. The
// error is of type [setting.Errors] if the text is not JSON. The Report uses the text, which must not change.
func Read(text []byte, to any, renamed map[string]string) (*Report, error) {
	plain, root, err := parse(text)
	if err != nil {
		return nil, setting.Errors{err}
	}
	r := &Report{text: plain, root: root, renamed: renamed}
	r.object(root, "", reflect.ValueOf(to).Elem())
	return r, nil
}

// fill sets to to a value of the file. If never is set, a duration of 0 becomes negative.
func (r *Report) fill(n *node, key string, to reflect.Value, never bool) {
	if r.text[n.at] == 'n' {
		r.fail(n, &setting.Error{Path: key, Value: setting.Literal("null"), Text: "leave the key out instead"})
		return
	}
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		r.fill(n, key, to.Elem(), never)
		return
	}
	switch x := to.Addr().Interface().(type) {
	case json.Unmarshaler:
		var b bytes.Buffer
		json.Compact(&b, r.text[n.at:n.end])
		r.ask(n, key, nil, x.UnmarshalJSON(b.Bytes()))
		return
	case encoding.TextUnmarshaler:
		if r.is(n, key, '"') && x.UnmarshalText([]byte(r.string(n))) != nil {
			r.unread(n, key, x)
		}
		return
	case *time.Duration:
		d, err := time.ParseDuration(r.string(n))
		if r.text[n.at] != '"' || err != nil || d < 0 {
			r.want(n, key, "a duration such as 300s")
		} else if *x = d; d == 0 && never {
			*x = -1
		}
		return
	}
	switch kind := to.Kind(); {
	case kind == reflect.Struct:
		r.object(n, key, to)
	case kind == reflect.Slice:
		r.list(n, key, to, never)
	case kind == reflect.Map && to.Type().Key().Kind() == reflect.String:
		r.members(n, key, to, never)
	case !readable(to):
		r.fail(n, &setting.Error{Path: key, Text: "a file cannot set a " + to.Type().String()})
	case kind == reflect.String:
		if r.is(n, key, '"') {
			to.SetString(r.string(n))
		}
	case kind == reflect.Bool:
		if r.is(n, key, 't') {
			to.SetBool(r.text[n.at] == 't')
		}
	case r.is(n, key, '0'):
		r.number(n, key, to)
	}
}

// unread reports that a type does not accept a string.
func (r *Report) unread(n *node, key string, x encoding.TextUnmarshaler) {
	switch x.(type) {
	case *netip.Addr:
		r.want(n, key, "an IP address such as 10.0.0.1")
	case *netip.Prefix:
		r.want(n, key, "an IP address with a prefix length, such as 10.0.0.1/24")
	case *netip.AddrPort:
		r.want(n, key, "an IP address with a port, such as 10.0.0.1:179")
	case *frame.MAC:
		r.want(n, key, "a MAC address such as 02:00:00:00:00:01")
	default:
		r.ask(n, key, nil, x.UnmarshalText([]byte(r.string(n))))
	}
}

// list fills a slice.
func (r *Report) list(n *node, key string, to reflect.Value, never bool) {
	if !r.is(n, key, '[') {
		return
	}
	to.Set(reflect.MakeSlice(to.Type(), 0, min(len(n.list), 1024))) // more only as long as there are no errors
	for i := 0; i < len(n.list) && !r.more; i++ {
		if r.taken += int(to.Type().Elem().Size()); r.taken > maxTaken {
			r.fail(n, &setting.Error{Path: key, Text: "too many elements in the file"})
			r.more = true
			return
		}
		to.Grow(1)
		to.SetLen(i + 1)
		r.fill(&n.list[i], key+"["+strconv.Itoa(i)+"]", to.Index(i), never)
	}
}

// maxTaken is the memory that elements of lists may take. A file with elements that say something has less.
const maxTaken = 256 << 20

// members fills a map.
func (r *Report) members(n *node, key string, to reflect.Value, never bool) {
	if !r.is(n, key, '{') {
		return
	}
	to.Set(reflect.MakeMap(to.Type()))
	r.each(n, key, func(name string, at, v *node) {
		in, k := member(key, name), reflect.ValueOf(name).Convert(to.Type().Key())
		if to.MapIndex(k).IsValid() {
			r.fail(at, &setting.Error{Path: in, Text: "duplicate key"})
			return
		}
		x := reflect.New(to.Type().Elem()).Elem()
		r.fill(v, in, x, never)
		to.SetMapIndex(k, x)
	})
}

// maxName is the longest name in a file. Errors contain names.
const maxName = 255

// each calls f with the names and values of an object.
func (r *Report) each(n *node, key string, f func(name string, at, v *node)) {
	for i := 0; i < len(n.list) && !r.more; i += 2 {
		at := &n.list[i]
		if name := r.string(at); len(name) > maxName {
			r.fail(at, &setting.Error{Path: member(key, name[:10]+"..."), Text: strconv.Itoa(len(name)) + " bytes in a key; at most 255 are allowed"})
		} else {
			f(name, at, &n.list[i+1])
		}
	}
}

// string returns a string of the file, "" for another value.
func (r *Report) string(n *node) (s string) {
	switch raw := r.text[n.at:n.end]; {
	case raw[0] != '"':
		return ""
	case bytes.IndexByte(raw, '\\') < 0:
		return string(raw[1 : len(raw)-1])
	default:
		json.Unmarshal(raw, &s)
		return s
	}
}

var kinds = map[byte]string{'"': "a string", '0': "a number", 't': "true or false", '{': "an object", '[': "a list", 'n': "null"}

// kind returns the kind of a value by its first byte.
func (r *Report) kind(n *node) string {
	c := r.text[n.at]
	if c == 'f' {
		c = 't'
	} else if kinds[c] == "" {
		c = '0'
	}
	return kinds[c]
}

// is reports whether a value is of a kind, and an error if it is not.
func (r *Report) is(n *node, key string, kind byte) bool {
	if r.kind(n) == kinds[kind] {
		return true
	}
	r.want(n, key, kinds[kind])
	return false
}

// want reports a value that is not allowed.
func (r *Report) want(n *node, key, allowed string) {
	r.fail(n, &setting.Error{Path: key, Value: r.shown(n), Allowed: allowed})
}

// shown returns a value as the file has it if that is short, else its kind.
func (r *Report) shown(n *node) setting.Literal {
	if n.end-n.at > 60 || n.list != nil || r.text[n.at] == '[' || r.text[n.at] == '{' {
		return setting.Literal(r.kind(n))
	}
	return setting.Literal(r.text[n.at:n.end])
}

var vniType = reflect.TypeFor[frame.VNI]()

// number fills an integer.
func (r *Report) number(n *node, key string, to reflect.Value) {
	text, bits := string(r.text[n.at:n.end]), to.Type().Bits()
	if to.CanInt() {
		i, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			r.want(n, key, "a whole number up to "+strconv.FormatInt(math.MaxInt64>>(64-bits), 10))
			return
		}
		to.SetInt(i)
		return
	}
	u, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		most := uint64(math.MaxUint64) >> (64 - bits)
		if to.Type() == vniType {
			most = uint64(frame.MaxVNI)
		}
		r.want(n, key, "0 to "+strconv.FormatUint(most, 10))
		return
	}
	to.SetUint(u)
}

// object fills a struct.
func (r *Report) object(n *node, key string, to reflect.Value) {
	if !r.is(n, key, '{') {
		return
	}
	s := shapeOf(to.Type())
	seen := make([]bool, len(s.fields))
	r.each(n, key, func(name string, at, v *node) {
		in := member(key, name)
		i, known := s.byKey[name]
		switch {
		case known && seen[i]:
			r.note(at, &setting.Error{Path: in, Text: "duplicate key"})
		case known:
			seen[i] = true
			r.fill(v, in, to.FieldByIndex(s.fields[i].Index), s.fields[i].never())
		case name == "$schema" && n == r.root: // for editors
			r.is(v, in, '"')
		case r.renamed[name] != "":
			r.note(at, &setting.Error{Path: in, Text: r.renamed[name]})
		default:
			r.note(at, &setting.Error{Path: in, Text: "unknown key; allowed are " + s.keys})
		}
	})
	for i := range s.fields {
		if f := &s.fields[i]; !seen[i] && f.Type == vniType && !f.omit() { // 0 is a VNI
			r.fail(n, &setting.Error{Path: member(key, f.Key), Text: "required"})
		}
	}
}
