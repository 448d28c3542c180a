package control

import (
	"math/rand/v2"
	"testing"
)

// Slots find what a map finds, with hashes that are equal, and that have equal homes.
func TestSlots(t *testing.T) {
	for _, mask := range []uint64{0, 0xf, 0xf0f, 1<<32 - 1} {
		r := rand.New(rand.NewPCG(1, mask))
		hash := make([]uint64, 2000) // of refs
		for i := range hash {
			hash[i] = r.Uint64() & mask
		}
		var s slots
		in := map[ref]bool{}
		for step := range 20_000 {
			n := ref(1 + r.IntN(len(hash)-1))
			if step > 15_000 {
				n = ref(1 + step%(len(hash)-1)) // all go
			}
			got, at := s.seek(hash[n], func(x ref) bool { return x == n })
			if (got == n) != in[n] || got != 0 && got != n {
				t.Fatalf("mask %x, step %d: %d is %d, want %v", mask, step, n, got, in[n])
			}
			if in[n] = !in[n] && step <= 15_000; in[n] {
				s.put(at, n)
			} else {
				s.put(at, 0)
			}
		}
		if s.live != 0 || len(s.list) > 8 {
			t.Errorf("mask %x: %d live, room for %d, want none", mask, s.live, len(s.list))
		}
	}
}
