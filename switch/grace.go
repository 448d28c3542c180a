package vswitch

import (
	"runtime"
	"sync/atomic"
	"time"
)

// An epoch tells whether a goroutine is using the switch's tables at this moment.
// It is even outside, odd inside; every enter is a new number.
type epoch struct{ n atomic.Uint64 }

func (e *epoch) enter() { e.n.Add(1) }
func (e *epoch) leave() { e.n.Add(1) }

// wait returns once the goroutine has left the batch it is in, if it is in one. What
// was unlinked before the call cannot be seen by it any more.
func (e *epoch) wait() {
	was := e.n.Load()
	if was%2 == 0 {
		return
	}
	for spin := 0; e.n.Load() == was; spin++ {
		if spin < 100 {
			runtime.Gosched()
		} else {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// grace waits until no worker can hold anything that was unlinked before the call:
// each has finished its batch or is parked in Read. s.mu is held, so that no worker
// is added meanwhile; a new one sees the new tables.
func (s *Switch) grace() {
	for w := range s.workers {
		w.wait()
	}
	s.sweeper.wait()
}
