package conf

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

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
	was   map[string]string
	at    map[string]int // by key
	errs  Errors
	told  map[string]bool // keys that errs are about
	wrong map[string]bool // keys of values that are wrong, and of what they are in
	more  int             // errors beyond MaxErrors
}

// MaxErrors is how many errors a Report tells, one by one.
const MaxErrors = 1000

// Fail notes what is wrong with the value at a key. The first thing counts: others follow from
// it.
func (r *Report) Fail(key, format string, args ...any) {
	r.note(key, fmt.Sprintf(format, args...))
	if r.wrong == nil {
		r.wrong = map[string]bool{}
	}
	for k := key; k != "" && !r.wrong[k]; k = above(k) {
		r.wrong[k] = true
	}
}

// Failed reports whether Fail had to do with a key, or with one in it.
func (r *Report) Failed(key string) bool { return r.wrong[key] }

// Told reports whether there is an error at a key.
func (r *Report) Told(key string) bool { return r.told[key] }

// note notes an error at a key, or at the nearest one above that is in the file.
func (r *Report) note(key, text string) {
	switch {
	case r.told[key]:
		return
	case len(r.errs) >= MaxErrors:
		r.more++
		return
	case r.told == nil:
		r.told = map[string]bool{}
	}
	r.told[key] = true
	e := &Error{Key: key, Text: text}
	for k := key; ; k = above(k) {
		if at, ok := r.at[k]; ok {
			e.Line, e.Column = position(r.text, at)
			break
		}
		if above(k) == "" {
			break
		}
	}
	r.errs = append(r.errs, e)
}

// above returns the key of what a value is in, "" for the whole configuration.
func above(key string) string { return key[:max(strings.LastIndexAny(key, ".["), 0)] }

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
	slices.SortStableFunc(r.errs, func(a, b *Error) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	if r.more > 0 {
		return append(r.errs, &Error{Text: fmt.Sprintf("and %d more", r.more)})
	}
	return r.errs
}

// Ask notes what the Check of a part says, which is of the type of at and at a key. What is wrong
// with the part as a whole is not noted where a value in it is: it follows from that.
func (r *Report) Ask(key string, at any, check func() error) {
	err := check()
	var errs setting.Errors
	if err != nil && !errors.As(err, &errs) && !r.wrong[key] {
		_, text, _ := strings.Cut(err.Error(), ": ")
		r.Fail(key, "%s", text)
	}
	for _, e := range errs {
		of := key
		if name := Key(reflect.TypeOf(at), e.Field); name != "" {
			of = Join(key, name)
		}
		r.Fail(of, "%s", e.Text)
	}
}
