package conf

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/vxswitch/vxswitch/setting"
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

// A Report is what is wrong with settings, by their keys. That of [Read] knows where in the text
// they are; the zero Report is of settings that come from none.
type Report struct {
	text  []byte
	root  *hujson.Value
	names map[*hujson.Object]map[string]*hujson.Value // of objects in which errors were looked for
	was   map[string]string
	errs  []noted
	told  map[string]bool // keys that errs are about
	wrong map[string]bool // keys of values that are wrong, and of what they are in
	more  bool            // there are errors beyond MaxErrors
}

// noted is an error, and its offset in the text, -1 for none.
type noted struct {
	Error
	at int
}

// MaxErrors is how many errors a Report tells, one by one.
const MaxErrors = 1000

// Full reports whether there are more errors than it tells. Who looks for others may stop then, as
// Read does.
func (r *Report) Full() bool { return r.more }

// Fail notes what is wrong with the value at a key. The first thing counts: others follow from
// it.
func (r *Report) Fail(key, format string, args ...any) { r.fail(key, nil, format, args...) }

// fail is Fail of a value, nil for one that is found by its key.
func (r *Report) fail(key string, v *hujson.Value, format string, args ...any) {
	r.note(key, v, format, args...)
	if r.wrong == nil {
		r.wrong = map[string]bool{}
	}
	for k := key; !r.wrong[k]; k = above(k) {
		r.wrong[k] = true
	}
}

// Failed reports whether Fail had to do with a key, or with one in it.
func (r *Report) Failed(key string) bool { return r.wrong[key] }

// Told reports whether there is an error at a key.
func (r *Report) Told(key string) bool { return r.told[key] }

// note notes an error of a value, nil for that at a key, or at the nearest one above that is in the file.
func (r *Report) note(key string, v *hujson.Value, format string, args ...any) {
	switch {
	case r.told[key]:
		return
	case len(r.errs) >= MaxErrors:
		r.more = true
		return
	case r.told == nil:
		r.told = map[string]bool{}
	}
	r.told[key] = true
	e := noted{Error{Key: key, Text: oneLine(fmt.Sprintf(format, args...))}, -1}
	if v == nil {
		v = r.find(key)
	}
	if v != nil {
		e.at = v.StartOffset
	}
	r.errs = append(r.errs, e)
}

// find returns the value at a key, or at the nearest one above that is in the file; nil without a file.
func (r *Report) find(key string) *hujson.Value {
	v := r.root
	for v != nil && key != "" {
		var in *hujson.Value
		name, index, rest := cut(key)
		switch x := v.Value.(type) {
		case *hujson.Object:
			in = r.namesOf(x)[name]
		case *hujson.Array:
			if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(x.Elements) {
				in = &x.Elements[i]
			}
		}
		if in == nil {
			break
		}
		v, key = in, rest
	}
	return v
}

// namesOf returns what is in an object, of two with one name the first.
func (r *Report) namesOf(o *hujson.Object) map[string]*hujson.Value {
	m, ok := r.names[o]
	if !ok {
		m = make(map[string]*hujson.Value, len(o.Members))
		for i := range o.Members {
			if name := r.literal(&o.Members[i].Name).String(); m[name] == nil {
				m[name] = &o.Members[i].Value
			}
		}
		if r.names == nil {
			r.names = map[*hujson.Object]map[string]*hujson.Value{}
		}
		r.names[o] = m
	}
	return m
}

// maxText is far longer than what is to be said of a value.
const maxText = 4096

// oneLine returns a text of any length as one that fits on a line.
func oneLine(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return strings.ReplaceAll(text, "\n", "; ")
}

// position returns the line and column of an offset, both from 1.
func position(text []byte, at int) (line, column int) {
	before := text[:min(at, len(text))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// Err returns [Errors] in the order of the text, or nil.
func (r *Report) Err() error {
	if len(r.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(r.errs, func(a, b noted) int { return a.at - b.at })
	list := make(Errors, len(r.errs), len(r.errs)+1)
	line, column, last := 1, 1, 0
	for i := range r.errs {
		e := r.errs[i].Error
		if at := r.errs[i].at; at >= 0 {
			lines, col := position(r.text[last:], at-last)
			if line += lines - 1; lines > 1 {
				column = 1
			}
			column, last = column+col-1, at
			e.Line, e.Column = line, column
		}
		list[i] = &e
	}
	if r.more {
		list = append(list, &Error{Text: "and more"})
	}
	return list
}

// Ask notes what the Check of a part says, which is of the type of at and at a key. What is wrong
// with the part as a whole is not noted where a value in it is: it follows from that. Errors of this
// package are those of a part that is a configuration of its own.
func (r *Report) Ask(key string, at any, check func() error) {
	err := check()
	var errs setting.Errors
	switch {
	case err == nil || r.within(key, err):
	case errors.As(err, &errs):
	case !r.wrong[key]:
		text := err.Error()
		if _, after, ok := strings.Cut(text, ": "); ok { // the package
			text = after
		}
		r.Fail(key, "%s", text)
	}
	for _, e := range errs {
		if e.Field != "" || !r.wrong[key] {
			r.Fail(Join(key, Key(reflect.TypeOf(at), e.Field)), "%s", e.Text)
		}
	}
}

// within notes the errors of a configuration that is at a key, if err is such.
func (r *Report) within(key string, err error) bool {
	var errs Errors
	if !errors.As(err, &errs) {
		return false
	}
	for _, e := range errs {
		r.Fail(Join(key, e.Key), "%s", e.Text)
	}
	return true
}
