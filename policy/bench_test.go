package policy

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkFlows is one look-up of a flow, of each in no order: with 100,000 of them it may
// take twice the time of 1000.
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
