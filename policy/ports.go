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

// newPorts makes the look-up of the lists of all rules. It returns nil if all are empty.
func newPorts(p *pool, rules int, list func(rule int) []PortRange) *ports {
	edges, free := []int{0}, p.empty()
	for r := range rules {
		l := list(r)
		if len(l) == 0 {
			free.add(r)
		}
		for _, x := range l {
			edges = append(edges, int(x.First), int(x.Last)+1)
		}
	}
	if len(edges) == 1 {
		return nil
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	if edges[len(edges)-1] == 1<<16 {
		edges = edges[:len(edges)-1]
	}
	made := make([]ruleBits, len(edges))
	for i := range made {
		made[i] = slices.Clone(free)
	}
	for r := range rules {
		for _, x := range list(r) {
			i, _ := slices.BinarySearch(edges, int(x.First))
			for ; i < len(edges) && edges[i] <= int(x.Last); i++ {
				made[i].add(r)
			}
		}
	}
	t := &ports{without: p.name(free)}
	for i, e := range edges {
		t.starts = append(t.starts, uint16(e))
		t.sets = append(t.sets, p.name(made[i]))
	}
	at := 0
	for hi := range 256 {
		for at+1 < len(edges) && edges[at+1] <= hi<<8 {
			at++
		}
		t.page[hi] = uint16(at)
	}
	t.page[256] = uint16(len(edges) - 1)
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
