package table

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// Each binding with counts has a row, which changes with them alone, and goes with the binding.
func TestWriteStats(t *testing.T) {
	var d Database
	fill(t, &d, base)
	one, other := Member{"p1", 0}, Member{"p2", 7}
	told := map[Member]Counts{}
	for step, x := range []struct {
		counts map[Member]Counts
		ops    string // by name
		stats  [2]int // of p1 and p2
	}{
		{map[Member]Counts{}, "", [2]int{0, 0}},
		{map[Member]Counts{one: {1, 100, 2, 200}, other: {3, 300, 4, 400}}, "insert mutate insert mutate", [2]int{1, 1}},
		{map[Member]Counts{one: {1, 100, 2, 200}, other: {3, 300, 4, 400}}, "", [2]int{1, 1}},
		{map[Member]Counts{one: {1, 100, 3, 300}, other: {3, 300, 4, 400}}, "update", [2]int{1, 1}},
		{map[Member]Counts{one: {9, 100, 3, 300}, {"none", 0}: {}}, "update mutate", [2]int{1, 0}},
		{nil, "mutate", [2]int{0, 0}},
	} {
		ops := d.WriteStats(us, x.counts, told)
		var names []string
		for _, op := range ops {
			names = append(names, op["op"].(string))
		}
		if got := strings.Join(names, " "); got != x.ops {
			t.Errorf("step %d: %s, want %s", step, got, x.ops)
		}
		carry(t, &d, ops)
		told = x.counts
		for i, p := range []string{"p1", "p2"} {
			n := 0
			d.Row(PhysicalPort, p).pairs("vlan_stats", func(k, v any) {
				n++
				row, _ := json.Marshal(d.Row(BindingStats, uuid(v)))
				want, _ := json.Marshal(x.counts[[]Member{one, other}[i]].row())
				if string(row) != string(want) {
					t.Errorf("step %d, %s: %s, want %s", step, p, row, want)
				}
			})
			if n != x.stats[i] {
				t.Errorf("step %d: %d rows of %s", step, n, p)
			}
		}
	}
}

// Counters of OVSDB end at 2^63-1.
func TestCountsEnd(t *testing.T) {
	if n := (Counts{PacketsIn: 1 << 63}).row()["packets_to_local"]; n != int64(math.MaxInt64) {
		t.Error(n)
	}
}
