package policy

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkFlows is one look-up of a flow, of each in no order: what 100,000 of them cost more
// than 1000 is one cache line from memory. What that is of a packet BenchmarkPolicy has.
func BenchmarkFlows(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		var f flows
		f.init(n)
		for i := range n {
			w := keyOf(i)
			f.put(&w, stIngress, 1)
		}
		f.sweep(1, &forever)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				w := keyOf(r.IntN(n))
				if _, ok := f.find(&w, 1, &forever); !ok {
					b.Fatal("not there")
				}
			}
		})
	}
}
