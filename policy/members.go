package policy

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"
)

// A members looks up what an address is in: which lists, those of rules and those with names. Addresses that are in
// the same have one class. What a class means for rules is compiled for each class once, whatever its addresses; so
// the members of a set change without the rules, and rules are compiled without the members.
type members struct {
	table   *bart.Table[member]
	classes []addrClass // the first is in nothing
	byKey   map[string]uint32
	free    []uint32 // classes of no address
	fresh   []uint32 // new ones, for which nothing is compiled
	key     []byte
}

// A member is a prefix in the table.
type member struct{ own, all uint32 } // its class by itself; with the lists of the prefixes around it

// An addrClass is the labels of some prefixes, in order.
type addrClass struct {
	labels []label
	refs   int // of members
}

// A label says that a prefix is in a list, or in a set of ports with one of its services:
//
//	list 32 | service 32, 0 = none
type label uint64

func newLabel(list, service uint32) label { return label(list)<<32 | label(service) }
func (l label) list() uint32              { return uint32(l >> 32) }
func (l label) service() uint32           { return uint32(l) }

func newMembers() *members {
	return &members{table: new(bart.Table[member]), classes: make([]addrClass, 1), byKey: map[string]uint32{"": 0}}
}

// class returns the class with labels, which are in order.
func (m *members) class(labels []label) uint32 {
	m.key = m.key[:0]
	for _, l := range labels {
		m.key = binary.BigEndian.AppendUint64(m.key, uint64(l))
	}
	if c, ok := m.byKey[string(m.key)]; ok {
		return c
	}
	c := uint32(len(m.classes))
	if n := len(m.free); n != 0 {
		c, m.free = m.free[n-1], m.free[:n-1]
	} else {
		m.classes = append(m.classes, addrClass{})
	}
	m.classes[c] = addrClass{labels: slices.Clone(labels)}
	m.byKey[string(m.key)] = c
	m.fresh = append(m.fresh, c)
	return c
}

// join returns the class of what is in either of two.
func (m *members) join(a, b uint32) uint32 {
	switch {
	case a == 0 || a == b:
		return b
	case b == 0:
		return a
	}
	list := slices.Concat(m.classes[a].labels, m.classes[b].labels)
	slices.Sort(list)
	return m.class(slices.Compact(list))
}

func (m *members) hold(x member) {
	m.classes[x.own].refs++
	m.classes[x.all].refs++
}

func (m *members) release(x member) {
	for _, c := range [2]uint32{x.own, x.all} {
		k := &m.classes[c]
		if k.refs--; k.refs != 0 || c == 0 {
			continue
		}
		m.key = m.key[:0]
		for _, l := range k.labels {
			m.key = binary.BigEndian.AppendUint64(m.key, uint64(l))
		}
		delete(m.byKey, string(m.key))
		*k = addrClass{}
		m.free = append(m.free, c)
	}
}

// around returns the class of the prefixes around x in a table.
func around(t *bart.Table[member], x netip.Prefix) uint32 {
	if x.Bits() == 0 {
		return 0
	}
	y, _ := t.LookupPrefix(netip.PrefixFrom(x.Addr(), x.Bits()-1).Masked())
	return y.all
}

// A filling makes members out of many prefixes at once.
type filling struct {
	*members
	nodes []node               // labels of prefixes; the first is none
	list  []netip.Prefix       // each once
	bits  [129]bool            // lengths of these
	pairs map[[2]uint32]uint32 // what join has returned
	label label                // of the prefixes that add gets
	note  func(member, bool) (member, bool)
	is    bool // the prefix is new
}

// A node is a label of a prefix, and its other ones.
type node struct {
	label label
	rest  uint32
}

// fill returns the filling of so many prefixes.
func fill(prefixes int) *filling {
	f := &filling{members: newMembers(), nodes: make([]node, 1, prefixes+1), pairs: map[[2]uint32]uint32{}, list: make([]netip.Prefix, 0, prefixes)}
	f.note = func(x member, known bool) (member, bool) {
		f.is = !known
		f.nodes = append(f.nodes, node{f.label, x.own})
		return member{own: uint32(len(f.nodes) - 1)}, false
	}
	return f
}

// add labels a prefix.
func (f *filling) add(x netip.Prefix, l label) {
	f.label = l
	if f.table.Modify(x, f.note); f.is {
		f.list = append(f.list, x)
		f.bits[x.Bits()] = true
	}
}

// end returns the members.
func (f *filling) end() *members {
	var labels []label
	inside := false // a shorter prefix is in the table
	for bits, some := range f.bits {
		if !some {
			continue
		}
		for _, x := range f.list {
			if x.Bits() != bits { // shorter ones have their class already
				continue
			}
			e, _ := f.table.Get(x)
			labels = labels[:0]
			for n := e.own; n != 0; n = f.nodes[n].rest {
				labels = append(labels, f.nodes[n].label)
			}
			slices.Sort(labels)
			e.own = f.class(slices.Compact(labels))
			e.all = e.own
			if inside {
				e.all = f.joined(around(f.table, x), e.own)
			}
			f.hold(e)
			f.table.Insert(x, e)
		}
		inside = true
	}
	f.fresh = nil
	return f.members
}

func (f *filling) joined(a, b uint32) uint32 {
	pair := [2]uint32{a, b}
	c, ok := f.pairs[pair]
	if !ok {
		c = f.join(a, b)
		f.pairs[pair] = c
	}
	return c
}

// change adds a label to a prefix or takes it off, and reports whether that changed anything. Readers of the old table are
// not disturbed.
func (m *members) change(x netip.Prefix, l label, add bool) bool {
	was, in := m.table.Get(x)
	labels := m.classes[was.own].labels
	i, has := slices.BinarySearch(labels, l)
	if has == add {
		return false
	}
	labels = slices.Clone(labels)
	if add {
		labels = slices.Insert(labels, i, l)
	} else {
		labels = slices.Delete(labels, i, i+1)
	}
	inside := m.inside(x)
	is := member{own: m.class(labels)}
	if is.all = m.join(around(m.table, x), is.own); len(labels) == 0 {
		m.table = m.table.DeletePersist(x)
	} else {
		m.table = m.table.InsertPersist(x, is)
		m.hold(is)
	}
	for _, y := range inside {
		was, _ := m.table.Get(y)
		if all := m.join(around(m.table, y), was.own); all != was.all {
			is := member{was.own, all}
			m.table = m.table.InsertPersist(y, is)
			m.hold(is)
			m.release(was)
		}
	}
	if in {
		m.release(was)
	}
	return true
}

// inside returns the prefixes inside x, without x, the shorter ones first.
func (m *members) inside(x netip.Prefix) (list []netip.Prefix) {
	if x.IsSingleIP() {
		return nil
	}
	for y := range m.table.Subnets(x) {
		if y != x {
			list = append(list, y)
		}
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	return list
}

// each returns each label of each prefix.
func (m *members) each() iter.Seq2[netip.Prefix, label] {
	return func(yield func(netip.Prefix, label) bool) {
		for x, e := range m.table.All() {
			for _, l := range m.classes[e.own].labels {
				if !yield(x, l) {
					return
				}
			}
		}
	}
}
