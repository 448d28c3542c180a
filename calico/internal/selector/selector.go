// Package selector is the language in which resources of Calico choose others by their labels:
//
//	has(rack) && rack in {"a", "b"} && !(role contains 'edge')
//
// What it accepts and what it means is what Calico documents for EntityRule and BGPPeer:
//
//	all(), global(), ""        everything; what global() means for policies is theirs
//	has(k)                     there is a label k
//	k == "v", k != "v"         it has this value; it has another one, or is not there
//	k in {"v", "w"}, not in    likewise, with several values
//	k contains "v"             it is there, and its value has v in it
//	k starts with "v"          likewise, at the beginning
//	k ends with "v"            likewise, at the end
//	!x, x && y, x || y, (x)    in this order of precedence
//
// Values are in single or double quotes, without escapes.
package selector

import (
	"slices"
	"strings"
)

// A Selector is a parsed text. It never changes.
type Selector struct {
	root node
}

// Labels are those of one thing, by name.
type Labels map[string]string

// Matches reports whether a thing is chosen. It has the labels of several maps, of which the first with a name counts.
func (s *Selector) Matches(labels ...Labels) bool { return s.root.matches(labels) }

// String returns a text with the same meaning, the same for all texts that differ only in spaces, quotes, needless parentheses, and in the
// order and repetition of the values of a set.
func (s *Selector) String() string {
	var b strings.Builder
	s.root.write(&b)
	return b.String()
}

func lookup(labels []Labels, name string) (value string, ok bool) {
	for _, l := range labels {
		if value, ok = l[name]; ok {
			return value, true
		}
	}
	return "", false
}

// A node is a part of a selector. It may be deep in others, but no deeper than maxDepth.
type node interface {
	matches(labels []Labels) bool
	write(b *strings.Builder)
}

type (
	everything string // its text
	has        string
	not        struct{ node }
	and        []node
	or         []node
)

// A compare is about the value of one label.
type compare struct {
	label  string
	op     operator
	values []string // sorted, one unless op is in or notIn
}

// An operator compares the value of a label.
type operator uint8

const (
	equal operator = iota
	unequal
	in
	notIn
	contains
	startsWith
	endsWith
)

var operators = [...]string{equal: "==", unequal: "!=", in: "in", notIn: "not in", contains: "contains", startsWith: "starts with", endsWith: "ends with"}

func (everything) matches([]Labels) bool { return true }

func (h has) matches(labels []Labels) bool {
	_, ok := lookup(labels, string(h))
	return ok
}

func (n not) matches(labels []Labels) bool { return !n.node.matches(labels) }

func (a and) matches(labels []Labels) bool {
	for _, n := range a {
		if !n.matches(labels) {
			return false
		}
	}
	return true
}

func (o or) matches(labels []Labels) bool {
	for _, n := range o {
		if n.matches(labels) {
			return true
		}
	}
	return false
}

func (c *compare) matches(labels []Labels) bool {
	value, ok := lookup(labels, c.label)
	switch c.op {
	case equal:
		return ok && value == c.values[0]
	case unequal:
		return !ok || value != c.values[0]
	case contains:
		return ok && strings.Contains(value, c.values[0])
	case startsWith:
		return ok && strings.HasPrefix(value, c.values[0])
	case endsWith:
		return ok && strings.HasSuffix(value, c.values[0])
	}
	_, among := slices.BinarySearch(c.values, value)
	return (ok && among) == (c.op == in)
}

func (e everything) write(b *strings.Builder) { b.WriteString(string(e)) }

func (h has) write(b *strings.Builder) { b.WriteString("has(" + string(h) + ")") }

func (n not) write(b *strings.Builder) {
	b.WriteByte('!')
	switch n.node.(type) {
	case and, or:
		group(b, n.node)
	default:
		n.node.write(b)
	}
}

func (a and) write(b *strings.Builder) {
	for i, n := range a {
		if i > 0 {
			b.WriteString(" && ")
		}
		if _, ok := n.(or); ok {
			group(b, n)
		} else {
			n.write(b)
		}
	}
}

func group(b *strings.Builder, n node) {
	b.WriteByte('(')
	n.write(b)
	b.WriteByte(')')
}

func (o or) write(b *strings.Builder) {
	for i, n := range o {
		if i > 0 {
			b.WriteString(" || ")
		}
		n.write(b)
	}
}

func (c *compare) write(b *strings.Builder) {
	b.WriteString(c.label + " " + operators[c.op] + " ")
	if c.op != in && c.op != notIn {
		b.WriteString(quote(c.values[0]))
		return
	}
	b.WriteByte('{')
	for i, v := range c.values {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(v))
	}
	b.WriteByte('}')
}

// quote puts a value in quotes that are not in it: the parser makes none with both.
func quote(v string) string {
	if strings.Contains(v, `"`) {
		return "'" + v + "'"
	}
	return `"` + v + `"`
}
