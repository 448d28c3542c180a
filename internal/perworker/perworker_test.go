package perworker

import (
	"sync"
	"testing"
)

// What workers and others count is all there, whoever comes first.
func TestSet(t *testing.T) {
	var s Set[Counter]
	if s.All() != nil {
		t.Error("something in an empty set")
	}
	var wg sync.WaitGroup
	for worker := range 9 {
		wg.Go(func() {
			for range 1000 {
				s.Of(worker/8*worker).Count(2, worker/8*worker) // 0 to 7 are no workers
			}
		})
	}
	wg.Wait()
	var sum uint64
	for _, c := range s.All() {
		sum += c.Load()
	}
	if sum != 9*2000 || len(s.All()) != 9 || s.Of(8).Load() != 2000 {
		t.Errorf("%d in %d", sum, len(s.All()))
	}
}
