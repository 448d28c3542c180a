package bgp

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/batch"
)

// A way is where packets go, and how wide the links of the next hops are that it leads to.
type way struct {
	control.Via
	width float64
}

// ways returns the ways to a prefix by next hops that are taken, each once for a link, and of too many those with the lowest next hops. The
// list is the table's until the next call.
func (t *table) ways(p netip.Prefix) []way {
	paths, ways := t.used.paths[:0], t.used.ways[:0]
	for _, x := range t.prefixes[p].paths {
		if x.why == None {
			paths = append(paths, x)
		}
	}
	if len(paths) <= batch.Most { // peers say how many there are
		t.used.paths = paths
	}
	segment := func(x path) frame.VNI { return t.rules.link(x.peer.Value()).Segment }
	slices.SortFunc(paths, func(a, b path) int {
		return cmp.Or(a.nextHop.Value().Compare(b.nextHop.Value()), cmp.Compare(segment(a), segment(b)), cmp.Compare(b.width, a.width))
	})
	paths = slices.CompactFunc(paths, func(a, b path) bool { return a.nextHop == b.nextHop && segment(a) == segment(b) })
	all := true // paths have widths
	for _, x := range paths {
		all = all && x.width > 0 && !math.IsInf(float64(x.width), 0)
		via, _ := t.rules.judge(p, x.nextHop.Value(), x.peer.Value())
		if i := slices.IndexFunc(ways, func(w way) bool { return w.Via == via }); i >= 0 {
			ways[i].width += float64(x.width)
		} else if len(ways) < cmp.Or(t.rules.cfg.MaxPaths, DefaultMaxPaths) {
			ways = append(ways, way{via, float64(x.width)})
		}
	}
	t.used.ways = ways
	if all {
		weigh(ways)
	}
	return ways
}

// weigh gives ways their shares of the flows, none if these are equal.
func weigh(ways []way) {
	if len(ways) == 0 {
		return
	}
	byWidth := func(a, b way) int { return cmp.Compare(a.width, b.width) }
	least, most := slices.MinFunc(ways, byWidth).width, slices.MaxFunc(ways, byWidth).width
	if least == most {
		return
	}
	for i := range ways {
		ways[i].Weight = uint8(max(math.Round(ways[i].width/most*math.MaxUint8), 1))
	}
}
