package perworker

import (
	"sync"
	"sync/atomic"
	"testing"
)

// The counts of an owner are where others look for them, while the table grows.
func TestTable(t *testing.T) {
	var s Table[atomic.Uint64]
	if s.At(0) != nil || s.At(1<<31) != nil {
		t.Error("something in an empty table")
	}
	nums := []uint32{5, 63, 64, 100_000, 5, 1000, 64}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 1000 {
			for _, n := range nums {
				s.Of(n).Add(1)
			}
		}
	})
	wg.Go(func() {
		var last uint64
		for range 1000 {
			if x := s.At(64); x != nil {
				if n := x.Load(); n < last {
					t.Errorf("%d after %d", n, last)
				} else {
					last = n
				}
			}
		}
	})
	wg.Wait()
	want := map[uint32]uint64{5: 2000, 63: 1000, 64: 2000, 1000: 1000, 100_000: 1000}
	for n, x := range s.All {
		if x.Load() != want[n] {
			t.Errorf("%d: %d, want %d", n, x.Load(), want[n])
		}
		delete(want, n)
	}
	if len(want) != 0 || s.At(128) != nil || s.At(100_000) != s.Of(100_000) {
		t.Errorf("left: %v", want)
	}
	if n := testing.AllocsPerRun(100, func() { s.Of(1000).Add(1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
