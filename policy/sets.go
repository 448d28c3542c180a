package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Lists are the numbers of what prefixes may be in: each prefix that a rule has, and sets.
type lists struct {
	literal     map[netip.Prefix]uint32
	sets, ports map[string]uint32
	n           uint32
}

// listsOf numbers the lists of a Config.
func listsOf(cfg *Config, rules []line) *lists {
	l := &lists{literal: map[netip.Prefix]uint32{}, sets: map[string]uint32{}, ports: map[string]uint32{}}
	for name := range cfg.Sets {
		l.sets[name] = l.next()
	}
	for name := range cfg.PortSets {
		l.ports[name] = l.next()
	}
	for i := range rules {
		r := &rules[i]
		for _, list := range [][]netip.Prefix{r.Src, r.Dst, r.NotSrc, r.NotDst} {
			for _, x := range list {
				if _, ok := l.literal[x]; !ok {
					l.literal[x] = l.next()
				}
			}
		}
	}
	return l
}

func (l *lists) next() uint32 {
	l.n++
	return l.n - 1
}

// fillAll makes the members of a Config. Sets that are nil there have those that they had.
func fillAll(cfg *Config, l, old *lists, had *members) *members {
	n, kept := len(l.literal), map[uint32]uint32{} // the number of each old list
	for name, list := range cfg.Sets {
		n += len(list)
		if was, ok := old.sets[name]; ok && list == nil {
			kept[was] = l.sets[name]
		}
	}
	for name, list := range cfg.PortSets {
		n += len(list)
		if was, ok := old.ports[name]; ok && list == nil {
			kept[was] = l.ports[name]
		}
	}
	if len(kept) != 0 {
		n += had.table.Size()
	}
	f := fill(n)
	for x, number := range l.literal {
		f.add(x, newLabel(number, 0))
	}
	for name, list := range cfg.Sets {
		for _, x := range list {
			f.add(x, newLabel(l.sets[name], 0))
		}
	}
	for name, list := range cfg.PortSets {
		for _, e := range list {
			f.add(e.prefix(), newLabel(l.ports[name], e.service()))
		}
	}
	if len(kept) != 0 {
		had.each(func(x netip.Prefix, was label) {
			if number, ok := kept[was.list()]; ok {
				f.add(x, newLabel(number, was.service()))
			}
		})
	}
	return f.end()
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
	p.members.each(func(x netip.Prefix, l label) {
		if l.list() == number {
			list = append(list, x)
		}
	})
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits())
	})
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
	p.members.each(func(x netip.Prefix, l label) {
		if l.list() == number {
			list = append(list, Endpoint{x.Addr(), uint8(l.service() >> 16), uint16(l.service())})
		}
	})
	slices.SortFunc(list, func(a, b Endpoint) int {
		return cmp.Or(a.Addr.Compare(b.Addr), int(a.Protocol)-int(b.Protocol), int(a.Port)-int(b.Port))
	})
	return list
}
