package selector

import (
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Any text: it is refused, or is written so that it means the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{``, `all()`, `has(a) && !has(b)`, `a in {'b', "c"} || (a not in {} && b contains "x")`, `!(a starts with 'x' || a ends with "y")`, `a == "b`, `((((`, `a != '"'`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		if err != nil {
			t.Fatalf("%q is written as %q: %v", text, s, err)
		}
		if again.String() != s.String() {
			t.Fatalf("%q is written as %q, and that as %q", text, s, again)
		}
		for _, l := range some {
			if s.Matches(l) != again.Matches(l) {
				t.Fatalf("%q is written as %q, which is something else for %v", text, s, l)
			}
		}
	})
}

var some = []Labels{nil, {"a": ""}, {"a": "x"}, {"a": "xy", "b": "x"}, {"b": "yx"}, {"a": "y", "b": "y"}}

// A selector made of a tree, with spaces and parentheses as they come: it matches what the tree does.
func FuzzMatches(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{9, 1, 0, 2, 1, 3, 4, 1, 0, 5})
	f.Add([]byte{10, 11, 3, 1, 2, 2, 1, 12, 6, 0, 1, 7, 1, 2, 8, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		text, want := tree((*check.Draw)(&b), 0)
		s := check.Must(Parse(text))(t)
		for _, l := range some {
			if s.Matches(l) != want(l) {
				t.Fatalf("%s: labels %v: %v", text, l, !want(l))
			}
		}
	})
}

// tree returns a text and what it means.
func tree(m *check.Draw, depth int) (string, func(Labels) bool) {
	kind := m.N(13)
	if depth > 12 {
		kind %= 10
	}
	space := check.Pick(m, "", " ", "\t ")
	label, q := check.Pick(m, "a", "b", "c"), check.Pick(m, `"`, "'")
	value := check.Pick(m, "", "x", "y", "xy")
	get := func(l Labels) (string, bool) { v, ok := l[label]; return v, ok }
	quoted := space + q + value + q + space
	switch kind {
	case 0:
		return "all(" + space + ")", func(Labels) bool { return true }
	case 1:
		return "has(" + space + label + space + ")", func(l Labels) bool { _, ok := get(l); return ok }
	case 2:
		return label + space + "==" + quoted, func(l Labels) bool { v, ok := get(l); return ok && v == value }
	case 3:
		return label + space + "!=" + quoted, func(l Labels) bool { v, ok := get(l); return !ok || v != value }
	case 4:
		return label + " contains" + quoted, func(l Labels) bool { v, ok := get(l); return ok && strings.Contains(v, value) }
	case 5:
		return label + " starts" + space + "with" + quoted, func(l Labels) bool { v, ok := get(l); return ok && len(v) >= len(value) && v[:len(value)] == value }
	case 6:
		return label + " ends" + space + "with" + quoted, func(l Labels) bool {
			v, ok := get(l)
			return ok && len(v) >= len(value) && v[len(v)-len(value):] == value
		}
	case 7, 8:
		var list, texts []string
		for range m.N(4) {
			v := check.Pick(m, "", "x", "y", "xy")
			list, texts = append(list, v), append(texts, q+v+q)
		}
		op := "in"
		if kind == 8 {
			op = "not" + space + "in"
		}
		return label + " " + op + space + "{" + strings.Join(texts, space+","+space) + "}", func(l Labels) bool {
			v, ok := get(l)
			return (ok && slices.Contains(list, v)) == (kind == 7)
		}
	case 9:
		return "global()", func(Labels) bool { return true }
	case 10:
		x, is := tree(m, depth+1)
		return "!" + space + "(" + x + ")", func(l Labels) bool { return !is(l) }
	}
	x, one := tree(m, depth+1)
	y, two := tree(m, depth+1)
	if kind == 11 {
		return "(" + x + ")" + space + "&&" + space + "(" + y + ")", func(l Labels) bool { return one(l) && two(l) }
	}
	return "((" + x + ")" + space + "||" + space + "(" + y + "))", func(l Labels) bool { return one(l) || two(l) }
}
