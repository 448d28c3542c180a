package conf

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/setting"
)

// A Report collects the errors in settings by their keys. The Report of [Read] has their positions in the file; the
// zero Report is for settings without a file.
type Report struct {
	text    []byte
	root    *node
	names   map[*node]map[string]*node // values by name, of objects with errors
	renamed map[string]string
	errs    []noted
	told    map[string]bool // keys of errs
	wrong   map[string]bool // keys of wrong values, and of the values around them
	more    bool            // there are more than MaxErrors, or more than is read
	taken   int             // bytes of memory, for elements of lists
}

// noted is an error with its offset in the text, -1 without a text.
type noted struct {
	*setting.Error
	at int
}

// MaxErrors is the number of errors that a Report holds.
const MaxErrors = 1000

// maxText is the longest text that a Report keeps of an error.
const maxText = 8192

// Full reports whether there are more errors than the Report holds. There is no point in looking for others.
func (r *Report) Full() bool { return r.more }

// Want adds an error: the value at a key is not allowed. The format describes the values that are. Only the first
// error at a key counts, here and in Fail.
func (r *Report) Want(key string, value any, format string, args ...any) {
	r.fail(nil, &setting.Error{Path: key, Value: value, Allowed: fmt.Sprintf(format, args...)})
}

// Fail adds an error for another reason. A value of nil is not shown.
func (r *Report) Fail(key string, value any, format string, args ...any) {
	r.fail(nil, &setting.Error{Path: key, Value: value, Text: fmt.Sprintf(format, args...)})
}

// fail adds an error about a value, nil to find it by its key.
func (r *Report) fail(n *node, e *setting.Error) {
	r.note(n, e)
	if r.wrong == nil {
		r.wrong = map[string]bool{}
	}
	for key := e.Path; !r.wrong[key]; key = parent(key) {
		r.wrong[key] = true
	}
}

// Failed reports whether the value at a key, or one inside it, is wrong.
func (r *Report) Failed(key string) bool { return r.wrong[key] }

// Told reports whether there is an error at a key.
func (r *Report) Told(key string) bool { return r.told[key] }

// note adds an error without marking its value as wrong. For a value of nil it finds the value at the key, or the
// nearest one around it.
func (r *Report) note(n *node, e *setting.Error) {
	switch {
	case r.told[e.Path]:
		return
	case len(r.errs) >= MaxErrors:
		r.more = true
		return
	case r.told == nil:
		r.told = map[string]bool{}
	}
	r.told[e.Path] = true
	e.Text = strings.Clone(e.Text[:min(len(e.Text), maxText)])
	if n == nil {
		n = r.find(e.Path)
	}
	at := -1
	if n != nil {
		at = n.at
	}
	r.errs = append(r.errs, noted{e, at})
}

// find returns the value at a key, or the nearest one around it; nil without a file.
func (r *Report) find(key string) *node {
	n := r.root
	for n != nil && key != "" {
		var in *node
		name, index, rest := cut(key)
		if r.text[n.at] == '{' {
			in = r.namesOf(n)[name]
		} else if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(n.list) {
			in = &n.list[i]
		}
		if in == nil {
			break
		}
		n, key = in, rest
	}
	return n
}

// namesOf returns the values of an object by name, the first of two.
func (r *Report) namesOf(n *node) map[string]*node {
	m, ok := r.names[n]
	if !ok {
		m = make(map[string]*node, len(n.list)/2)
		for i := 0; i < len(n.list); i += 2 {
			if name := r.string(&n.list[i]); m[name] == nil {
				m[name] = &n.list[i+1]
			}
		}
		if r.names == nil {
			r.names = map[*node]map[string]*node{}
		}
		r.names[n] = m
	}
	return m
}

// Err returns [setting.Errors] in the order of the file, or nil.
func (r *Report) Err() error {
	if len(r.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(r.errs, func(a, b noted) int { return a.at - b.at })
	list := make(setting.Errors, len(r.errs), len(r.errs)+1)
	line, from, last := 1, 0, 0 // the line of the offset last, and where it begins
	for i, e := range r.errs {
		if list[i] = e.Error; e.at >= 0 {
			line += bytes.Count(r.text[last:e.at], []byte("\n"))
			if n := bytes.LastIndexByte(r.text[last:e.at], '\n'); n >= 0 {
				from = last + n + 1
			}
			last = e.at
			e.Line, e.Column = line, e.at-from+1
		}
	}
	if r.more {
		list = append(list, &setting.Error{Text: "and more"})
	}
	return list
}

// Ask adds the errors that a Check returns for the settings at a key; at is of the type of the settings. An error
// about the settings as a whole is left out if a value in them is wrong.
func (r *Report) Ask(key string, at any, check func() error) {
	r.ask(nil, key, reflect.TypeOf(at), check())
}

// ask adds errors about a value, nil to find it by its key. Paths in Go are those of a type.
func (r *Report) ask(n *node, key string, t reflect.Type, err error) {
	var list setting.Errors
	var one *setting.Error
	switch {
	case err == nil:
	case errors.As(err, &list):
		for _, e := range list {
			x := *e
			if x.Config != "" {
				x.Config, x.Path = "", Key(t, x.Path)
				if e.Path == "" && r.wrong[key] {
					continue
				}
			}
			x.Path = Join(key, x.Path)
			r.fail(nil, &x)
		}
	case errors.As(err, &one):
		x := *one
		x.Path = key
		r.fail(n, &x)
	case !r.wrong[key]:
		r.fail(n, &setting.Error{Path: key, Text: err.Error()})
	}
}
