package vswitch

import "sync/atomic"

// An epoch says whether a goroutine is using the switch's tables: it is odd while it is. Every enter
// has a new number.
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

// wait returns once the goroutine has left the batch that it is in, if any. From then on it cannot see
// what was unlinked before the call. One caller may wait at a time.
func (e *epoch) wait() {
	was := e.n.Load()
	if was%2 == 0 {
		return
	}
	for e.n.Load() == was {
		e.asked.Store(true)
		if e.n.Load() != was {
			return // it left before it saw asked
		}
		<-e.left // perhaps from an earlier wait
	}
}

// Settle waits until no frame is being forwarded by settings from before the call. It must not be called
// from a Stage.
func (s *Switch) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grace()
}

// grace waits until no worker can hold anything that was unlinked before the call: each has finished its
// batch or waits in Read. s.mu is held, so no worker starts meanwhile; a new one would see the new
// tables anyway.
func (s *Switch) grace() {
	for w := range s.workers {
		w.wait()
	}
	s.sweeper.wait()
	if o := s.offload.Load(); o != nil {
		(*o).Settle()
	}
}
