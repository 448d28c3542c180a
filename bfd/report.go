package bfd

import (
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/setting"
)

// Status is what a session says about its path, for those who use it.
type Status uint8

// Statuses. A session begins as Unknown.
const (
	Unknown Status = iota // it was not up yet, or an operator holds it down, here or at the peer: use the path as without BFD
	Alive                 // up, for [SessionConfig].Hold if it was before
	Dead                  // it was up and failed
)

var statusNames = []string{Unknown: "unknown", Alive: "alive", Dead: "dead"}

// String returns the name of the status.
func (s Status) String() string { return setting.Name(statusNames, s) }

// A Change is a new status of a session.
type Change struct {
	Peer       Peer
	Status     Status
	Diag       Diag // why the state of the session changed
	RemoteDiag Diag // what the peer said last
	When       time.Time
	Missed     int // changes just before this one that were left out because Notify did not return for long
}

// maxWaiting is how many changes of one session wait for Notify; beyond that the newest replaces the one before. With the
// default Hold it takes Notify several seconds of not returning to get there.
const maxWaiting = 16

// reports is the queue of changes.
type reports struct {
	mu    sync.Mutex
	list  []report
	first uint64 // number of list[0]
	of    map[*session]waiting
	kick  chan struct{}
}

type report struct {
	x *session
	c Change
}

// waiting is how many changes of a session are in the queue, and the number of the last.
type waiting struct {
	n    int
	last uint64
}

// put adds a change. It does not wait.
func (r *reports) put(x *session, c Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.of[x]
	if w.n == maxWaiting {
		old := &r.list[w.last-r.first].c
		c.Missed = old.Missed + 1
		*old = c
		return
	}
	r.list = append(r.list, report{x, c})
	r.of[x] = waiting{w.n + 1, r.first + uint64(len(r.list)) - 1}
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// take removes the oldest change.
func (r *reports) take() (report, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == 0 {
		r.list = nil
		return report{}, false
	}
	p := r.list[0]
	r.list[0] = report{}
	r.list, r.first = r.list[1:], r.first+1
	if w := r.of[p.x]; w.n > 1 {
		r.of[p.x] = waiting{w.n - 1, w.last}
	} else {
		delete(r.of, p.x)
	}
	return p, true
}

// deliver calls Notify until done is closed.
func (r *reports) deliver(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-r.kick:
		}
		for p, ok := r.take(); ok; p, ok = r.take() {
			p.x.mu.Lock()
			f := p.x.cfg.Notify
			if p.x.gone {
				f = nil
			}
			p.x.mu.Unlock()
			if f != nil {
				f(p.c)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	}
}
