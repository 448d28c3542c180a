package policy

import "slices"

// A ports looks up sets of rules by a 16-bit number: sorted intervals, and for each high byte the
// first interval that reaches into it, so that few remain to search.
type ports struct {
	starts  []uint16
	sets    []uint32
	page    [257]uint16
	without uint32 // for frames without such a number
}

// A portList is a condition of a rule on a 16-bit number: in one of is, if there are any, and in none of not.
type portList struct{ is, not []PortRange }

func (l portList) any() bool { return len(l.is)+len(l.not) == 0 }

// ranges returns where the condition holds, in order and apart.
func (l portList) ranges() []PortRange {
	is := l.is
	if len(is) == 0 {
		is = []PortRange{{0, 65535}}
	}
	list := union(is)
	for _, x := range union(l.not) {
		var rest []PortRange
		for _, y := range list {
			if x.Last < y.First || y.Last < x.First {
				rest = append(rest, y)
				continue
			}
			if y.First < x.First {
				rest = append(rest, PortRange{y.First, x.First - 1})
			}
			if x.Last < y.Last {
				rest = append(rest, PortRange{x.Last + 1, y.Last})
			}
		}
		list = rest
	}
	return list
}

// union returns ranges in order, with those that touch joined.
func union(list []PortRange) (joined []PortRange) {
	list = slices.SortedFunc(slices.Values(list), func(a, b PortRange) int { return int(a.First) - int(b.First) })
	for _, x := range list {
		if n := len(joined); n != 0 && int(x.First) <= int(joined[n-1].Last)+1 {
			joined[n-1].Last = max(joined[n-1].Last, x.Last)
		} else {
			joined = append(joined, x)
		}
	}
	return joined
}

// An edge is where the ranges of a rule begin or end.
type edge struct {
	at, rule int
	ends     bool
}

// newPorts makes the look-up of the lists of all rules. It returns nil if all are empty.
func newPorts(p *pool, rules int, list func(rule int) portList) *ports {
	var edges []edge
	now, some := p.empty(), false
	for r := range rules {
		l := list(r)
		if l.any() {
			now.add(r)
			continue
		}
		some = true
		for _, x := range l.ranges() {
			edges = append(edges, edge{int(x.First), r, false}, edge{int(x.Last) + 1, r, true})
		}
	}
	if !some {
		return nil
	}
	slices.SortFunc(edges, func(a, b edge) int { return a.at - b.at })
	t := &ports{without: p.name(now)}
	for at := 0; at < 1<<16; {
		for ; len(edges) != 0 && edges[0].at == at; edges = edges[1:] {
			if e := edges[0]; e.ends { // the ranges of a rule are apart, and do not touch
				now.remove(e.rule)
			} else {
				now.add(e.rule)
			}
		}
		t.starts, t.sets = append(t.starts, uint16(at)), append(t.sets, p.name(now))
		at = 1 << 16
		if len(edges) != 0 {
			at = edges[0].at
		}
	}
	at := 0
	for hi := range 256 {
		for at+1 < len(t.starts) && int(t.starts[at+1]) <= hi<<8 {
			at++
		}
		t.page[hi] = uint16(at)
	}
	t.page[256] = uint16(len(t.starts) - 1)
	return t
}

// find returns the set of n's interval: the last one that begins at n or before.
func (t *ports) find(n uint16) uint32 {
	lo, hi := int(t.page[n>>8]), int(t.page[n>>8+1])
	for lo < hi {
		if mid := (lo + hi + 1) / 2; t.starts[mid] <= n {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return t.sets[lo]
}

func (t *ports) of(n uint16, known bool) uint32 {
	if !known {
		return t.without
	}
	return t.find(n)
}
