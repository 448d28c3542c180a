package policy

import (
	"net/netip"
	"slices"
)

// A side is what all rules ask of one end of a packet, its source or its destination. It makes an addrs.
type side struct {
	asksAddr, asksPort bool
	free               ruleBits // rules without a list of addresses of which the address must be in one
	needless           ruleBits // rules without sets that the address must be in
	portFree           ruleBits // rules without sets of ports of which the port must be in one
	portless           ruleBits // rules that ask for no sets of ports
	nonIP              ruleBits // rules that ask for no address

	// Rules by the lists that they name:
	some, none  [][]int // the address is in the list, in no such list
	need        [][]int // it must be: the first list of needs
	needs       map[int][]uint32
	ports, less [][]int // the port is in the set, in no such set

	scratch [2]ruleBits
}

// An asked is what a rule asks of one end.
type asked struct {
	list, not             []netip.Prefix
	set                   string
	all, notSets          []string
	ports, notPorts       []PortRange
	portSets, notPortSets []string
}

func sourceOf(r *Rule) asked {
	return asked{r.Src, r.NotSrc, r.SrcSet, r.AllSrcSets, r.NotSrcSets, r.SrcPorts, r.NotSrcPorts, r.SrcPortSets, r.NotSrcPortSets}
}

func destinationOf(r *Rule) asked {
	return asked{r.Dst, r.NotDst, r.DstSet, r.AllDstSets, r.NotDstSets, r.DstPorts, r.NotDstPorts, r.DstPortSets, r.NotDstPortSets}
}

// addr reports whether a rule asks for addresses.
func (a *asked) addr() bool {
	return len(a.list)+len(a.not)+len(a.all)+len(a.notSets) != 0 || a.set != ""
}

// port reports whether a rule asks for sets of ports.
func (a *asked) port() bool { return len(a.portSets)+len(a.notPortSets) != 0 }

// newSide reads what of returns for all rules. All lists have their numbers.
func newSide(p *pool, l *lists, rules []line, of func(*Rule) asked) *side {
	s := &side{
		free: p.empty(), needless: p.empty(), portFree: p.empty(), portless: p.empty(), nonIP: p.empty(), needs: map[int][]uint32{},
		some: make([][]int, l.n), none: make([][]int, l.n), need: make([][]int, l.n), ports: make([][]int, l.n), less: make([][]int, l.n),
	}
	for i := range rules {
		a := of(&rules[i].Rule)
		s.add(l, i, &a)
	}
	return s
}

func (s *side) add(l *lists, rule int, a *asked) {
	if !a.addr() {
		s.nonIP.add(rule)
	} else {
		s.asksAddr = true
	}
	put := func(rules [][]int, list uint32) { rules[list] = append(rules[list], rule) }
	for _, x := range a.list {
		put(s.some, l.literal[x])
	}
	if a.set != "" {
		put(s.some, l.sets[a.set])
	} else if len(a.list) == 0 {
		s.free.add(rule)
	}
	for _, x := range a.not {
		put(s.none, l.literal[x])
	}
	for _, name := range a.notSets {
		put(s.none, l.sets[name])
	}
	for _, name := range a.all {
		s.needs[rule] = append(s.needs[rule], l.sets[name])
	}
	if len(a.all) == 0 {
		s.needless.add(rule)
	} else {
		put(s.need, s.needs[rule][0])
	}
	if !a.port() {
		s.portless.add(rule)
	} else {
		s.asksPort = true
	}
	if len(a.portSets) == 0 {
		s.portFree.add(rule)
	}
	for _, name := range a.portSets {
		put(s.ports, l.ports[name])
	}
	for _, name := range a.notPortSets {
		put(s.less, l.ports[name])
	}
}

// byAddr returns the rules that an address with labels satisfies, until it is called again.
func (s *side) byAddr(labels []label) ruleBits {
	b := append(s.scratch[0][:0], s.free...)
	s.scratch[0] = b
	for _, x := range labels {
		for _, r := range s.some[x.list()] {
			b.add(r)
		}
	}
	if len(s.needs) != 0 {
		needs := append(s.scratch[1][:0], s.needless...)
		s.scratch[1] = needs
		for _, x := range labels {
			for _, r := range s.need[x.list()] {
				if hasAll(labels, s.needs[r]) {
					needs.add(r)
				}
			}
		}
		b.and(needs)
	}
	for _, x := range labels {
		for _, r := range s.none[x.list()] {
			b.remove(r)
		}
	}
	return b
}

func hasAll(labels []label, lists []uint32) bool {
	for _, n := range lists {
		if _, ok := slices.BinarySearch(labels, newLabel(n, 0)); !ok {
			return false
		}
	}
	return true
}

// byPort returns the rules that a service satisfies of an address with labels, until it or byAddr is called again.
func (s *side) byPort(labels []label, service uint32) ruleBits {
	b := append(s.scratch[0][:0], s.portFree...)
	s.scratch[0] = b
	for _, x := range labels {
		if x.service() == service {
			for _, r := range s.ports[x.list()] {
				b.add(r)
			}
		}
	}
	for _, x := range labels {
		if x.service() == service {
			for _, r := range s.less[x.list()] {
				b.remove(r)
			}
		}
	}
	return b
}
