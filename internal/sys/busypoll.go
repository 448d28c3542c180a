package sys

import "time"

// A BusyPoll says whether a reader that found nothing asks again at once, or waits in the
// poller. Asking again is worth its processor time only when something comes soon: then
// nobody has to be woken up, which takes longer than the packet itself. It guesses that the
// next wait is as the last one was, so a reader with nothing to do never spins. It is used
// by one goroutine.
//
// Between two questions it lets other threads run (sched_yield). Those that wait for a
// processor pay for it all the same: where there are fewer processors than busy threads it
// makes everything slower.
type BusyPoll struct {
	Max time.Duration // to keep asking for; 0 = never ask

	start time.Time // of the wait, zero between waits
	soon  bool      // the last wait was not much longer than Max
	asked bool      // in this wait
	row   int       // waits that ended by asking again, one after the other
}

// MaxBusyPoll is the longest Max that is of use.
const MaxBusyPoll = time.Millisecond

// horizon times Max is how long a wait may have been for the next to begin with asking: what
// is asked for may come sooner because of it.
const horizon = 4

// maxRow is how many waits in a row may end by asking again. While every processor of the
// Go scheduler is held by readers that do, nobody looks into its poller: this bounds for
// how long.
const maxRow = 16

// Again is called when there is nothing. It reports whether to ask again.
func (p *BusyPoll) Again() bool {
	if p.Max == 0 {
		return false
	}
	if p.start.IsZero() {
		p.start = time.Now()
		p.asked = p.soon && p.row < maxRow
		return p.asked
	}
	if p.asked && time.Since(p.start) >= p.Max {
		p.asked = false
	}
	if p.asked {
		yield()
	}
	return p.asked
}

// Found is called when there was something.
func (p *BusyPoll) Found() {
	if p.start.IsZero() {
		return
	}
	p.soon = time.Since(p.start) < horizon*p.Max
	if p.row++; !p.asked {
		p.row = 0
	}
	p.start = time.Time{}
}
