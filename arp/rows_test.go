package arp

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A table keeps each entry while its pages come and go, and has no more of them than it needs.
func TestPages(t *testing.T) {
	table := check.Must(NewTable(nil))(t)
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	of := func(i int) frame.MAC { return frame.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)} }
	random := rand.New(rand.NewPCG(1, 2))
	is := map[int]bool{}
	for step := range 20_000 {
		i := random.IntN(10 * pageRows)
		if step/4000%2 == 1 { // now it empties
			i = random.IntN(2 * 10 * pageRows)
		}
		if step/4000%2 == 0 && random.IntN(3) > 0 {
			check.OK(t, table.Set(at(i), of(i), Static, 0))
			is[i] = true
		} else if table.Delete(at(i)) != is[i] {
			t.Fatalf("step %d: Delete(%v): want %v", step, at(i), is[i])
		} else {
			delete(is, i)
		}
		if n, pages := table.Len(), len(table.rows.pages); n != len(is) || pages > n/pageRows+2 {
			t.Fatalf("step %d: %d entries in %d pages, want %d", step, n, pages, len(is))
		}
	}
	for i := range 10 * pageRows {
		if e, ok := table.Lookup(at(i)); ok != is[i] || ok && e.MAC != of(i) {
			t.Errorf("%v: %v, %v", at(i), e, ok)
		}
	}
}
