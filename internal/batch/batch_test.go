package batch

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"
)

func TestQueue(t *testing.T) {
	var q Queue[int]
	const all = 8*pageLen + 7
	for round := range 3 {
		for i := range all {
			q.Add(i)
			q.Add(i / 2) // is there
		}
		if q.Len() != all {
			t.Fatalf("round %d: %d, want %d", round, q.Len(), all)
		}
		var got []int
		for more, extra := true, 1; more; extra = 0 {
			var list []int
			list, more = q.Pass(func(x int) {
				got = append(got, x)
				q.Add(x) // is there
				if extra > 0 && x == 5 {
					q.Add(all) // at the end
				}
			})
			if len(list) > Most || more != (q.Len() > 0) || more && len(list) < Most {
				t.Fatalf("round %d: %d passed, %d left, more %v", round, len(list), q.Len(), more)
			}
		}
		if len(got) != all+1 || !slices.IsSorted(got) || len(q.pages) != 0 || q.in != nil {
			t.Errorf("round %d: %d in another order, %d pages", round, len(got), len(q.pages))
		}
	}
}

// What has been passed is not kept.
func TestQueueForgets(t *testing.T) {
	var q Queue[*[64]int]
	var list []weak.Pointer[[64]int]
	for range 3 * pageLen {
		x := new([64]int)
		list = append(list, weak.Make(x))
		q.Add(x)
	}
	for more := true; more; {
		_, more = q.Pass(func(*[64]int) {})
	}
	runtime.GC()
	kept := 0
	for _, x := range list {
		if x.Value() != nil {
			kept++
		}
	}
	if kept > 0 {
		t.Errorf("%d of %d are kept", kept, len(list))
	}
	runtime.KeepAlive(&q)
}

// A Loop runs at once when it is woken, then for all that came in a pause, again while there is more, and each tick.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := New(10*time.Millisecond, time.Second)
		begun := time.Now()
		var at, due []time.Duration
		more := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.Run(ctx, func(tick bool) bool {
				at = append(at, time.Since(begun))
				if tick {
					due = append(due, time.Since(begun))
				}
				more--
				return more >= 0
			})
		}()
		synctest.Wait()
		if len(at) != 0 {
			t.Errorf("without a change at %v", at)
		}
		l.Wake()
		synctest.Wait()
		time.Sleep(time.Millisecond)
		l.Wake()
		l.Wake()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		more = 2
		l.Wake()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		ms := time.Millisecond
		if want := []time.Duration{0, 10 * ms, 101 * ms, 101 * ms, 101 * ms, 1000 * ms, 2000 * ms}; !slices.Equal(at, want) {
			t.Errorf("at %v, want %v", at, want)
		}
		if want := []time.Duration{1000 * ms, 2000 * ms}; !slices.Equal(due, want) {
			t.Errorf("due at %v, want %v", due, want)
		}
		more = 1 << 30 // for ever
		l.Wake()
		cancel()
		<-done
	})
}
