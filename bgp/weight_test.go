package bgp

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Next hops get flows by the widths of their links, if all paths say how wide these are.
func TestWeight(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		what string
		hops []string
		wide []float32
		want string
	}{
		{"none says", []string{"10.0.0.2", "10.0.0.3"}, []float32{0, 0}, "[10.0.0.2 0 10.0.0.3 0]"},
		{"one does not", []string{"10.0.0.2", "10.0.0.3"}, []float32{1e6, 0}, "[10.0.0.2 0 10.0.0.3 0]"},
		{"equal", []string{"10.0.0.2", "10.0.0.3"}, []float32{1e6, 1e6}, "[10.0.0.2 0 10.0.0.3 0]"},
		{"one alone", []string{"10.0.0.2"}, []float32{1e6}, "[10.0.0.2 0]"},
		{"a third and two", []string{"10.0.0.2", "10.0.0.3"}, []float32{1e6, 2e6}, "[10.0.0.2 128 10.0.0.3 255]"},
		{"very narrow", []string{"10.0.0.2", "10.0.0.3"}, []float32{1e9, 1}, "[10.0.0.2 255 10.0.0.3 1]"},
		{"no number", []string{"10.0.0.2", "10.0.0.3"}, []float32{1e6, nan}, "[10.0.0.2 0 10.0.0.3 0]"},
		{"endless", []string{"10.0.0.2", "10.0.0.3"}, []float32{1e6, inf}, "[10.0.0.2 0 10.0.0.3 0]"},
		{"negative", []string{"10.0.0.2", "10.0.0.3"}, []float32{1e6, -1e6}, "[10.0.0.2 0 10.0.0.3 0]"},
		{"of one next hop the widest", []string{"10.0.0.2", "10.0.0.3", "10.0.0.2"}, []float32{1e6, 2e6, 2e6}, "[10.0.0.2 0 10.0.0.3 0]"},
		{"two behind one router", []string{"10.1.0.2", "10.1.0.3", "10.0.0.3"}, []float32{1e6, 1e6, 1e6}, "[10.0.0.3 128 10.0.0.254 255]"},
	} {
		x := newTable(settings())
		x.configure(settings(), gateway)
		for i, hop := range c.hops {
			p := pathTo("10.65.2.0/26", fmt.Sprintf("10.0.0.%d", 20+i), 0, hop)
			p.Bandwidth = c.wide[i]
			x.learned(p)
		}
		rows := x.rows(prefix("10.65.2.0/26"))
		slices.SortFunc(rows, func(a, b control.Prefix) int { return a.Via.IP.Compare(b.Via.IP) })
		var got []any
		for _, r := range rows {
			got = append(got, r.Via.IP, r.Via.Weight)
		}
		check.Equal(t, c.what, fmt.Sprint(got), c.want)
	}
}

// A path that says another width has the rows follow.
func TestWeightChanges(t *testing.T) {
	x, m := newTable(settings()), newModel()
	x.configure(settings(), gateway)
	learn := func(hop string, width float32) {
		p := pathTo("10.65.2.0/26", hop, 0, hop)
		p.Bandwidth = width
		x.learned(p)
	}
	weights := func() (list []uint8) {
		programmed(t, x, m)
		for _, r := range m.Rows("bgp") {
			if p := r.(control.Prefix); p.Prefix == netip.MustParsePrefix("10.65.2.0/26") {
				list = append(list, p.Via.Weight)
			}
		}
		return list
	}
	learn("10.0.0.2", 1e6)
	learn("10.0.0.3", 5e5)
	check.Equal(t, "two", fmt.Sprint(weights()), "[255 128]")
	learn("10.0.0.3", 1e6)
	check.Equal(t, "as wide now", fmt.Sprint(weights()), "[0 0]")
	x.down(addr("10.0.0.3"))
	check.Equal(t, "one", fmt.Sprint(weights()), "[0]")
}
