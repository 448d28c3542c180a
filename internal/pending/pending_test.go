package pending

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestTake(t *testing.T) {
	s := New[string](5)
	for _, c := range []struct {
		key  string
		now  uint32
		want bool
	}{{"a", 0, true}, {"a", 0, false}, {"a", 4, false}, {"a", 5, true},
		{"a", 4, false}, // of a worker whose clock is behind
		{"a", 9, false}, {"a", 10, true}} {
		if got := s.Take(c.key, c.now); got != c.want {
			t.Errorf("%s at %d: %v", c.key, c.now, got)
		}
	}
}

// However many keys there are, no more are pending than there are slots.
func TestBound(t *testing.T) {
	s := New[int](5)
	n := 0
	for k := range 100 * slots {
		if s.Take(k, 7) {
			n++
		}
	}
	if n != slots {
		t.Errorf("%d, want %d", n, slots)
	}
	if a := testing.AllocsPerRun(100, func() { s.Take(3, 7) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

// Of many who ask at once, one is told to.
func TestTogether(t *testing.T) {
	s := New[int](2)
	for now := range uint32(100) {
		var asked atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if s.Take(1, 2*now) {
					asked.Add(1)
				}
			})
		}
		if wg.Wait(); asked.Load() != 1 {
			t.Fatalf("%d asked", asked.Load())
		}
	}
}
