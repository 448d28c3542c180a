package selector

import "slices"

// All returns the selector of everything.
func All() *Selector { return &Selector{everything("all()")} }

// Has returns that of what has a label.
func Has(label string) *Selector { return &Selector{has(label)} }

// In returns that of what has one of some values of a label. Values must not have both kinds of quotes.
func In(label string, values ...string) *Selector {
	c := &compare{label: label, op: in, values: sorted(values)}
	if len(c.values) == 1 {
		c.op = equal
	}
	return &Selector{c}
}

// sorted returns values in order, each once.
func sorted(values []string) []string { return slices.Compact(slices.Sorted(slices.Values(values))) }

// And returns the selector of what each of a list chooses. Those that are nil are no condition.
func And(list ...*Selector) *Selector {
	var all and
	for _, s := range list {
		if s == nil {
			continue
		}
		if a, ok := s.root.(and); ok {
			all = append(all, a...)
		} else {
			all = append(all, s.root)
		}
	}
	switch len(all) {
	case 0:
		return All()
	case 1:
		return &Selector{all[0]}
	}
	return &Selector{all}
}

// Not returns the selector of everything else.
func (s *Selector) Not() *Selector {
	if n, ok := s.root.(not); ok {
		return &Selector{n.node}
	}
	return &Selector{not{s.root}}
}

// Prefixed returns the selector with a prefix before the names of all labels.
func (s *Selector) Prefixed(prefix string) *Selector {
	return s.with(func(n node) node {
		switch n := n.(type) {
		case has:
			return has(prefix + string(n))
		case *compare:
			return &compare{prefix + n.label, n.op, n.values}
		}
		return n
	})
}

// Replace returns the selector with another one in place of all() or global().
func (s *Selector) Replace(text string, by *Selector) *Selector {
	return s.with(func(n node) node {
		if e, ok := n.(everything); ok && string(e) == text {
			return by.root
		}
		return n
	})
}

func (s *Selector) with(change func(node) node) *Selector { return &Selector{changed(s.root, change)} }

// changed returns a node with changed leaves.
func changed(n node, change func(node) node) node {
	switch n := n.(type) {
	case not:
		return (&Selector{changed(n.node, change)}).Not().root
	case and:
		list := make([]*Selector, len(n))
		for i, x := range n {
			list[i] = &Selector{changed(x, change)}
		}
		return And(list...).root
	case or:
		list := make(or, len(n))
		for i, x := range n {
			list[i] = changed(x, change)
		}
		return list
	}
	return change(n)
}
