package pending

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/worst"
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
		if got := s.Take(c.key, 1, 0, c.now); got != c.want {
			t.Errorf("%s at %d: %v", c.key, c.now, got)
		}
	}
}

// However many keys there are, no more are pending than there are slots, and those of one place
// are its share.
func TestBound(t *testing.T) {
	s := New[int](5)
	n := 0
	for k := range 100 * slots {
		if s.Take(k, 1, 0, 7) {
			n++
		}
	}
	if n != share {
		t.Errorf("%d of one place, want %d", n, share)
	}
	for k := range 100 * slots {
		if s.Take(k, 1, uint16(k), 7) {
			n++
		}
	}
	if n > slots || n < slots-slots/10 {
		t.Errorf("%d, want nearly %d", n, slots)
	}
	if a := testing.AllocsPerRun(100, func() { s.Take(3, 1, 0, 7) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

// One place asks for ever other keys, for ten minutes: those of another are asked for all the
// same.
func TestWorstMisses(t *testing.T) {
	run := func(attack bool) (served int) {
		s := New[int](5)
		n := 1 << 20
		for now := range uint32(600) {
			for range 1000 {
				if attack {
					s.Take(n, 1, 0, now)
					n++
				}
			}
			for k := range 20 {
				if s.Take(int(now)%5*20+k, 2, 0, now) {
					served++
				}
			}
		}
		return served
	}
	worst.Kept(t, "reported misses", run(false), run(true))
}

// Of many who ask at once, one is told to.
func TestTogether(t *testing.T) {
	s := New[int](2)
	for now := range uint32(100) {
		var asked atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if s.Take(1, 1, 0, 2*now) {
					asked.Add(1)
				}
			})
		}
		if wg.Wait(); asked.Load() != 1 {
			t.Fatalf("%d asked", asked.Load())
		}
	}
}
