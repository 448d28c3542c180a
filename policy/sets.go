package policy

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
)

// Lists are the numbers of what prefixes may be in: each prefix that a rule has, and sets.
type lists struct {
	literal     map[netip.Prefix]uint32
	sets, ports map[string]uint32
	n           uint32
}

// listsOf numbers the lists of a Config. Those that are as they were keep their numbers: sets that are nil here, and prefixes of rules.
func listsOf(cfg *Config, rules []line, old *lists) *lists {
	l := &lists{literal: map[netip.Prefix]uint32{}, sets: map[string]uint32{}, ports: map[string]uint32{}, n: old.n}
	for name, list := range cfg.Sets {
		number(l, l.sets, old.sets, name, list == nil)
	}
	for name, list := range cfg.PortSets {
		number(l, l.ports, old.ports, name, list == nil)
	}
	for i := range rules {
		r := &rules[i]
		for _, list := range [][]netip.Prefix{r.Src, r.Dst, r.NotSrc, r.NotDst} {
			for _, x := range list {
				if _, ok := l.literal[x]; !ok {
					number(l, l.literal, old.literal, x, true)
				}
			}
		}
	}
	return l
}

// number gives a list its number: the one that it had if it may keep that, or the next.
func number[K comparable](l *lists, numbers, old map[K]uint32, name K, keep bool) {
	n, ok := old[name]
	if !ok || !keep {
		n = l.n
		l.n++
	}
	numbers[name] = n
}

// labels returns the labels of prefixes of rules, and of members of sets that are not nil.
func (l *lists) labels(cfg *Config) iter.Seq2[netip.Prefix, label] {
	return func(yield func(netip.Prefix, label) bool) {
		for x, number := range l.literal {
			if !yield(x, newLabel(number, 0)) {
				return
			}
		}
		for name, list := range cfg.Sets {
			for _, x := range list {
				if !yield(x, newLabel(l.sets[name], 0)) {
					return
				}
			}
		}
		for name, list := range cfg.PortSets {
			for _, e := range list {
				if !yield(e.prefix(), newLabel(l.ports[name], e.service())) {
					return
				}
			}
		}
	}
}

// setMembers makes the lists and members those of a Config. Sets that are nil there have the members that they had. p.mu is held.
func (p *Policy) setMembers(cfg *Config, rules []line) {
	old := p.lists
	p.lists = listsOf(cfg, rules, old)
	if p.changeMembers(cfg, old) {
		return
	}
	p.lists = listsOf(cfg, rules, &lists{}) // no number is left out
	kept := map[uint32]uint32{}             // the new number of old lists
	for name, list := range cfg.Sets {
		if was, ok := old.sets[name]; ok && list == nil {
			kept[was] = p.lists.sets[name]
		}
	}
	for name, list := range cfg.PortSets {
		if was, ok := old.ports[name]; ok && list == nil {
			kept[was] = p.lists.ports[name]
		}
	}
	n := 0
	for range p.lists.labels(cfg) {
		n++
	}
	if len(kept) != 0 {
		n += p.members.table.Size()
	}
	f := fill(n)
	for x, l := range p.lists.labels(cfg) {
		f.add(x, l)
	}
	if len(kept) != 0 {
		for x, was := range p.members.each() {
			if number, ok := kept[was.list()]; ok {
				f.add(x, newLabel(number, was.service()))
			}
		}
	}
	p.members = f.end()
}

// changeMembers changes what differs between the old lists and those of a Config. It changes nothing and returns false if that costs more
// than to fill in all, or if most numbers are those of lists that are gone.
func (p *Policy) changeMembers(cfg *Config, old *lists) bool {
	l, m := p.lists, p.members
	if int(l.n) > 2*(len(l.literal)+len(l.sets)+len(l.ports))+64 {
		return false
	}
	type step struct {
		x netip.Prefix
		l label
	}
	var add, del []step
	left := m.table.Size()/8 + 8 // prefixes that may change
	note := func(list *[]step, x netip.Prefix, l label) bool {
		*list = append(*list, step{x, l})
		left--
		for range m.table.Subnets(x) {
			if left--; left < 0 {
				break
			}
		}
		return left >= 0
	}
	for x, is := range l.labels(cfg) {
		if is.list() >= old.n && !note(&add, x, is) {
			return false
		}
	}
	for x, number := range old.literal {
		if _, ok := l.literal[x]; !ok && !note(&del, x, newLabel(number, 0)) {
			return false
		}
	}
	gone := map[uint32]bool{}
	for _, of := range [][2]map[string]uint32{{old.sets, l.sets}, {old.ports, l.ports}} {
		for name, number := range of[0] {
			if is, ok := of[1][name]; !ok || is != number {
				gone[number] = true
			}
		}
	}
	if len(gone) != 0 {
		for x, is := range m.each() {
			if gone[is.list()] && !note(&del, x, is) {
				return false
			}
		}
	}
	for _, s := range del {
		m.change(s.x, s.l, false)
	}
	for _, s := range add {
		m.change(s.x, s.l, true)
	}
	return true
}

// SetChanges are members that sets get and lose, by the name of the set. What a set gets and loses at once, it loses.
type SetChanges struct {
	Add, Delete           map[string][]netip.Prefix
	AddPorts, DeletePorts map[string][]Endpoint // of PortSets
}

// ChangeSets changes members of sets under traffic, all at once: no packet meets some of the changes without the others. Its cost
// grows with the number of members that are changed, and of the prefixes of other sets and rules inside them, not with the size of the
// sets. Deletes of what is not in a set are ignored. On an error nothing has changed.
func (p *Policy) ChangeSets(c *SetChanges) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.checkChanges(c); err != nil {
		return err
	}
	changed := false
	for i, list := range []map[string][]netip.Prefix{c.Add, c.Delete} {
		for name, prefixes := range list {
			for _, x := range prefixes {
				changed = p.members.change(x, newLabel(p.lists.sets[name], 0), i == 0) || changed
			}
		}
	}
	for i, list := range []map[string][]Endpoint{c.AddPorts, c.DeletePorts} {
		for name, members := range list {
			for _, e := range members {
				changed = p.members.change(e.prefix(), newLabel(p.lists.ports[name], e.service()), i == 0) || changed
			}
		}
	}
	p.changed(changed)
	return nil
}

// checkChanges returns what is wrong with changes. p.mu is held.
func (p *Policy) checkChanges(c *SetChanges) error {
	for _, list := range []map[string][]netip.Prefix{c.Add, c.Delete} {
		for name, prefixes := range list {
			if _, ok := p.lists.sets[name]; !ok {
				return fmt.Errorf("policy: set %q: Config.Sets has no such set", name)
			}
			for _, x := range prefixes {
				if !isPrefix(x) {
					return fmt.Errorf("policy: set %q: %v: must be a prefix without host bits", name, x)
				}
			}
		}
	}
	for _, list := range []map[string][]Endpoint{c.AddPorts, c.DeletePorts} {
		for name, members := range list {
			if _, ok := p.lists.ports[name]; !ok {
				return fmt.Errorf("policy: set of ports %q: Config.PortSets has no such set", name)
			}
			for _, e := range members {
				if !e.valid() {
					return fmt.Errorf("policy: set of ports %q: %v: must be %s", name, e, endpointForm)
				}
			}
		}
	}
	return nil
}

// AddToSet adds prefixes to a set, as ChangeSets does.
func (p *Policy) AddToSet(name string, prefixes ...netip.Prefix) error {
	return p.ChangeSets(&SetChanges{Add: map[string][]netip.Prefix{name: prefixes}})
}

// DeleteFromSet removes prefixes in the same way.
func (p *Policy) DeleteFromSet(name string, prefixes ...netip.Prefix) error {
	return p.ChangeSets(&SetChanges{Delete: map[string][]netip.Prefix{name: prefixes}})
}

// AddToPortSet adds members to one of PortSets in the same way.
func (p *Policy) AddToPortSet(name string, members ...Endpoint) error {
	return p.ChangeSets(&SetChanges{AddPorts: map[string][]Endpoint{name: members}})
}

// DeleteFromPortSet removes members in the same way.
func (p *Policy) DeleteFromPortSet(name string, members ...Endpoint) error {
	return p.ChangeSets(&SetChanges{DeletePorts: map[string][]Endpoint{name: members}})
}

// changed puts changed members into force. p.mu is held.
func (p *Policy) changed(is bool) {
	if !is {
		return
	}
	s := p.rules.Load().with(p.members)
	if len(p.pool.array) > p.pool.spare {
		p.pool.drop()
		p.compileAll(s)
	} else {
		p.src.compile(p.pool, &s.src, p.members.classes, p.members.fresh)
		p.dst.compile(p.pool, &s.dst, p.members.classes, p.members.fresh)
		p.members.fresh = p.members.fresh[:0]
	}
	p.publish(s)
}

// Set returns the prefixes of a set in order, nil if there is no such set.
func (p *Policy) Set(name string) []netip.Prefix {
	p.mu.Lock()
	defer p.mu.Unlock()
	number, ok := p.lists.sets[name]
	if !ok {
		return nil
	}
	list := []netip.Prefix{}
	for x, l := range p.members.each() {
		if l.list() == number {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, netip.Prefix.Compare)
	return list
}

// PortSet returns the members of one of PortSets in order, nil if there is no such set.
func (p *Policy) PortSet(name string) []Endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	number, ok := p.lists.ports[name]
	if !ok {
		return nil
	}
	list := []Endpoint{}
	for x, l := range p.members.each() {
		if l.list() == number {
			list = append(list, Endpoint{x.Addr(), uint8(l.service() >> 16), uint16(l.service())})
		}
	}
	slices.SortFunc(list, func(a, b Endpoint) int {
		return cmp.Or(a.Addr.Compare(b.Addr), int(a.Protocol)-int(b.Protocol), int(a.Port)-int(b.Port))
	})
	return list
}
