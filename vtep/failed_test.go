package vtep

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// told counts how many senders are told of a peer, up to a few more than there may be.
func told(v *VTEP, peer uint16) (n int) {
	for range 3 * maxReports {
		if v.Failed(peer) {
			n++
		}
	}
	return n
}

// Each report is told once, of the peer it is about; of one that is not ours, nobody is.
func TestFailed(t *testing.T) {
	a, b := raw4(), raw6()
	v := ipipVTEP(t, Config{}, a, b)
	one, two, six := addPeer(t, v, host(at(1))), addPeer(t, v, host(at(2))), addPeer(t, v, host(at6(1)))
	group := check.Must(v.Group(one, two))(t)
	p := bare4(0, 9, true).data
	want := func(why string, n1, n2, n6 int) {
		t.Helper()
		if g1, g2, g6 := told(v, one), told(v, two), told(v, six); g1 != n1 || g2 != n2 || g6 != n6 {
			t.Errorf("%s: told %d, %d and %d times, want %d, %d and %d", why, g1, g2, g6, n1, n2, n6)
		}
	}
	want("before", 0, 0, 0)
	a.unreachable(endpoint(t, host(at(1))), p)
	want("once", 1, 0, 0)
	for range 3 {
		a.unreachable(endpoint(t, at(1)), p[:8]) // the port says nothing
	}
	b.unreachable(endpoint(t, host(at6(1))), nil)
	want("as often as it was said", 3, 0, 1)
	want("and no more", 0, 0, 0)
	a.unreachable(endpoint(t, host(at(9))), p)
	a.unreachable(endpoint(t, host(at(1))), vx(vni, nil))
	want("of a stranger, or of what is not ours", 0, 0, 0)
	for range 1000 {
		a.unreachable(endpoint(t, host(at(2))), p)
	}
	want("often", 0, maxReports, 0)
	a.unreachable(endpoint(t, host(at(1))), p)
	for _, n := range []uint16{0, group, 999} {
		check.True(t, !v.Failed(n), "%d is no peer, and failed", n)
	}
	// The packet goes all the same.
	check.OK(t, v.Writer(0).Write([]frame.Out{bare4(0, 9, true).out(one, 0)}))
	check.True(t, len(a.sent) == 1, "nothing was sent")
	// With the peer goes what was said of it.
	v.DeletePeer(group)
	v.Control().Free(v.Control().Retire(func(uint16) bool { return false }))
	v.DeletePeer(one)
	v.Control().Free(v.Control().Retire(func(uint16) bool { return false }))
	a.unreachable(endpoint(t, host(at(1))), p)
	check.True(t, !v.Failed(addPeer(t, v, host(at(1)))), "a new peer has failed")
}

func TestFailedAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := raw4()
		v := ipipVTEP(t, Config{}, u)
		n := addPeer(t, v, host(at(1)))
		report := func() { u.unreachable(endpoint(t, host(at(1))), nil) }
		report()
		report()
		time.Sleep(30 * time.Second)
		check.True(t, v.Failed(n), "not told after 30 s")
		time.Sleep(time.Nanosecond)
		check.True(t, !v.Failed(n), "told of what is older")
		report()
		check.True(t, told(v, n) == 1, "not told of what is new")
		// Nobody was told of these while they were news.
		for range 5 {
			report()
		}
		time.Sleep(time.Minute)
		report()
		if k := told(v, n); k != 1 {
			t.Errorf("told %d times of one report", k)
		}
	})
}

// Reports come from anywhere while workers ask: none is told twice.
func TestFailedConcurrent(t *testing.T) {
	u := raw4()
	v := ipipVTEP(t, Config{}, u)
	n, e := addPeer(t, v, host(at(1))), endpoint(t, host(at(1)))
	var wg sync.WaitGroup
	var asked atomic.Int64
	const reports = 4000
	for range 2 {
		wg.Go(func() {
			for range reports / 2 {
				u.unreachable(e, nil)
			}
		})
		wg.Go(func() {
			for range reports {
				if v.Failed(n) {
					asked.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if total := int(asked.Load()) + told(v, n); total > reports || total == 0 {
		t.Errorf("told %d times of %d reports", total, reports)
	}
}

// An underlay that tells of nobody is one, too; what it wraps may.
func TestUnderlayWithoutReports(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	check.True(t, !v.Failed(addPeer(t, v, at(1))), "failed")
}
