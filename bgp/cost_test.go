package bgp

import (
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Routes of a node cost the same each, however many there are: none of the tables on their way is copied or gone through as a whole, neither
// for all of them nor for one that goes or comes.
func TestCost(t *testing.T) {
	cost := func(n int) (each, gone, back uint64) {
		x := newNode(t)
		s := check.Must(newSpeaker(x, simple(), newFake()))(t) // without the goroutine that flushes
		s.networked()
		for s.flush() {
		}
		flush := func() {
			for s.flush() {
			}
		}
		list := hostsOf("10.0.0.2", n)
		each = check.Allocated(func() {
			for len(list) > 0 { // as gobgp says them, and some more at once
				part := min(len(list), 1000)
				for i := range part {
					handler{s}.Learned(list[i : i+1])
				}
				list = list[part:]
				flush()
			}
		}) / uint64(n)
		one := hostsOf("10.0.0.2", n)[n-1:]
		gone = check.Allocated(func() { handler{s}.Withdrawn(one); flush() })
		back = check.Allocated(func() { handler{s}.Learned(one); flush() })
		check.Equal(t, "written", len(ways(x)), n)
		return each, gone, back
	}
	each, gone, back := cost(3000)
	e, g, b := cost(30_000)
	t.Logf("bytes for each, for one that goes and one that comes: of 3,000 %d, %d, %d; of 30,000 %d, %d, %d", each, gone, back, e, g, b)
	if e > 2*each || g > 2*gone || b > 2*back {
		t.Error("of 30,000 routes one costs more than twice as much")
	}
}

// What many goroutines say while it is looked into is all taken, in the order of each.
func TestInbox(t *testing.T) {
	x := newTable(settings())
	x.configure(settings(), gateway)
	var b inbox
	var wg sync.WaitGroup
	list := hostsOf("10.0.0.2", 1000)
	for g := range 4 {
		wg.Go(func() {
			for i := g; i < len(list); i += 4 {
				for range 3 {
					b.put(list[i:i+1], false)
					b.put([]engine.Path{list[i]}, true)
				}
				b.put(list[i:i+1], i%2 == 0)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for more := true; more; {
		select {
		case <-done:
			more = false
		default:
		}
		b.take(x)
	}
	check.Equal(t, "paths", x.n, 500)
}
