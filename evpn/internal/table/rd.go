package table

import (
	"cmp"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// rd returns the RD of what has none in the configuration: the router ID and a number, which stays unless it is configured for another.
// The first 65,535 numbers are different ones. VNIs in their place would meet, since there is room for 16 bits.
func (t *Table) rd(of any) route.RD {
	n, ok := t.numbers[of]
	if !ok {
		for range 0xffff {
			if t.number = t.number%0xffff + 1; !t.given[route.RDFrom(t.cfg.RouterID, t.number)] {
				break
			}
		}
		n = t.number
		t.numbers[of] = n
	}
	return route.RDFrom(t.cfg.RouterID, n)
}

func (t *Table) rdOf(s *segment) route.RD { return cmp.Or(s.RD, t.rd(s.VNI)) }

// renumber takes numbers away that are configured for others: routes of both would have one key.
func (t *Table) renumber() {
	clear(t.given)
	for _, s := range t.segments {
		t.given[s.RD] = true
	}
	for _, v := range t.vrfs {
		t.given[v.RD] = true
	}
	taken := false
	for of, n := range t.numbers {
		if t.given[route.RDFrom(t.cfg.RouterID, n)] {
			delete(t.numbers, of)
			taken = true
		}
	}
	if !taken {
		return
	}
	for _, s := range t.segments {
		t.touchSegment(s)
	}
	for _, v := range t.vrfs {
		t.touchVRF(v)
	}
}
