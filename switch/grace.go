package vswitch

import "sync/atomic"

// An epoch tells whether a goroutine is using the switch's tables at this moment.
// It is even outside, odd inside; every enter is a new number.
type epoch struct {
	n     atomic.Uint64
	asked atomic.Bool   // somebody waits for leave
	left  chan struct{} // room for one
}

func newEpoch() epoch { return epoch{left: make(chan struct{}, 1)} }

func (e *epoch) enter() { e.n.Add(1) }

func (e *epoch) leave() {
	e.n.Add(1)
	if e.asked.Load() {
		e.asked.Store(false)
		select {
		case e.left <- struct{}{}:
		default:
		}
	}
}

// wait returns once the goroutine has left the batch it is in, if it is in one. What
// was unlinked before the call cannot be seen by it any more. One may wait at a time.
func (e *epoch) wait() {
	was := e.n.Load()
	if was%2 == 0 {
		return
	}
	for e.n.Load() == was {
		e.asked.Store(true)
		if e.n.Load() != was {
			return // and did not see asked
		}
		<-e.left // perhaps for one who asked before
	}
}

// Settle returns once no frame is on its way by settings that were changed before the call: what
// is changed after it never meets them. It must not be called from a Stage.
func (s *Switch) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grace()
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
