package policy

import (
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"
)

// An addrs looks up source or destination addresses: each prefix of a rule, or of a set that a
// rule names, has the set of rules that it and the prefixes around it satisfy.
type addrs struct {
	table   *bart.Table[uint32] // nil if no rule has such addresses
	without uint32              // for other addresses, and frames without one
}

// addrRules are the rules by their source or their destination addresses. It updates an addrs.
type addrRules struct {
	free    ruleBits               // rules without such addresses
	literal map[netip.Prefix][]int // rules that name a prefix
	calls   map[string][]int       // rules that name a set
}

// newAddrRules reads the addresses that of returns for all rules. It returns nil if there are none.
func newAddrRules(p *pool, rules []Rule, of func(*Rule) ([]netip.Prefix, string)) *addrRules {
	s := &addrRules{free: p.empty(), literal: map[netip.Prefix][]int{}, calls: map[string][]int{}}
	for i := range rules {
		list, set := of(&rules[i])
		for _, x := range list {
			s.literal[x] = append(s.literal[x], i)
		}
		if set != "" {
			s.calls[set] = append(s.calls[set], i)
		}
		if len(list) == 0 && set == "" {
			s.free.add(i)
		}
	}
	if len(s.literal) == 0 && len(s.calls) == 0 {
		return nil
	}
	return s
}

func sourceOf(r *Rule) ([]netip.Prefix, string)      { return r.Src, r.SrcSet }
func destinationOf(r *Rule) ([]netip.Prefix, string) { return r.Dst, r.DstSet }

// concerns reports whether a prefix of these sets is in the look-up.
func (s *addrRules) concerns(x netip.Prefix, sets []string) bool {
	return len(s.literal[x]) != 0 || slices.ContainsFunc(sets, func(n string) bool { return len(s.calls[n]) != 0 })
}

// matching returns the rules that a prefix satisfies by itself.
func (s *addrRules) matching(p *pool, x netip.Prefix, sets []string) ruleBits {
	b := p.empty()
	for _, r := range s.literal[x] {
		b.add(r)
	}
	for _, n := range sets {
		for _, r := range s.calls[n] {
			b.add(r)
		}
	}
	return b
}

// build makes the look-up; in has the sets of each prefix.
func (s *addrRules) build(p *pool, in map[netip.Prefix][]string) addrs {
	if s == nil {
		return addrs{}
	}
	a := addrs{table: new(bart.Table[uint32]), without: p.name(s.free)}
	var list []netip.Prefix
	for x := range s.literal {
		list = append(list, x)
	}
	for x, sets := range in {
		if len(s.literal[x]) == 0 && s.concerns(x, sets) {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, shorterFirst)
	for _, x := range list { // shorter prefixes are in the table already
		b := s.matching(p, x, in[x])
		b.or(p.set(a.around(x)))
		a.table.Insert(x, p.name(b))
	}
	return a
}

func shorterFirst(a, b netip.Prefix) int {
	if a.Bits() != b.Bits() {
		return a.Bits() - b.Bits()
	}
	return a.Addr().Compare(b.Addr())
}

// around returns the set of the longest prefix around x that is in the table.
func (a *addrs) around(x netip.Prefix) uint32 {
	for y, set := range a.table.Supernets(x) {
		if y != x {
			return set
		}
	}
	return a.without
}

// change updates a after x has entered or left a set, with all prefixes inside x. Readers of the
// old table are not disturbed.
func (s *addrRules) change(p *pool, a *addrs, x netip.Prefix, in map[netip.Prefix][]string) {
	if s == nil {
		return
	}
	t := a.table
	if !s.concerns(x, in[x]) {
		t = t.DeletePersist(x)
	}
	var list []netip.Prefix
	for y := range t.Subnets(x) {
		if y != x {
			list = append(list, y)
		}
	}
	slices.SortFunc(list, shorterFirst)
	if s.concerns(x, in[x]) {
		list = slices.Insert(list, 0, x)
	}
	for _, y := range list {
		a.table = t
		b := s.matching(p, y, in[y])
		b.or(p.set(a.around(y)))
		t = t.InsertPersist(y, p.name(b))
	}
	a.table = t
}
