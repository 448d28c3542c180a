package sys

import (
	"testing"
	"testing/synctest"
	"time"
)

// wait is a wait of d, in which a reader that asks again does so every microsecond. It
// returns how long it asked; for the rest of d it was in the poller.
func wait(p *BusyPoll, d time.Duration) (asked time.Duration) {
	start := time.Now()
	for time.Since(start) < d && p.Again() {
		time.Sleep(time.Microsecond)
		asked = time.Since(start)
	}
	time.Sleep(d - time.Since(start))
	p.Found()
	return asked
}

func TestBusyPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 50 * time.Microsecond
		p := BusyPoll{Max: most}
		for i, step := range []struct{ wait, asked time.Duration }{
			{10 * time.Microsecond, 0},                     // the first wait of all
			{10 * time.Microsecond, 10 * time.Microsecond}, // as short as the last one
			{49 * time.Microsecond, 49 * time.Microsecond},
			{199 * time.Microsecond, most}, // in vain
			{time.Second, most},            // again: the last was not much longer
			{time.Second, 0},
			{200 * time.Microsecond, 0},
			{20 * time.Microsecond, 0}, // would have paid
			{20 * time.Microsecond, 20 * time.Microsecond},
		} {
			if got := wait(&p, step.wait); got != step.asked {
				t.Errorf("wait %d, of %v: asked for %v, want %v", i, step.wait, got, step.asked)
			}
		}
	})
}

// A reader that is busy goes to the poller now and then, for the sake of others.
func TestBusyPollGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := BusyPoll{Max: time.Millisecond}
		parked := 0
		for range 10 * (maxRow + 1) {
			if wait(&p, 10*time.Microsecond) == 0 {
				parked++
			}
		}
		if parked != 10 {
			t.Errorf("waited in the poller %d times, want 10", parked)
		}
	})
}

func TestBusyPollOff(t *testing.T) {
	var p BusyPoll
	for range 3 {
		if p.Again() {
			t.Fatal("asks again with Max 0")
		}
		p.Found()
	}
}
