package porttest

import (
	"net"
	"slices"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A passage is a frame on its way through a Faulty.
type passage struct {
	out frame.Out // F is a clone; only F is set on the way in
	due time.Time // when it leaves
	id  uint64
	err error // in place of a frame: what Read of the port returned
}

// A line is a bounded queue that frames leave when they are due, those that are due at
// once in the order they came. One goroutine takes; any number put.
type line struct {
	mu     sync.Mutex
	change sync.Cond // something take may wait for
	items  []passage // by due time
	size   int
	last   uint64 // id
	timer  *time.Timer
	paused bool
	closed bool
}

func newLine(size int) *line {
	l := &line{size: size}
	l.change.L = &l.mu
	l.timer = time.AfterFunc(time.Hour, l.wake)
	l.timer.Stop()
	return l
}

func (l *line) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change.Broadcast()
}

// put lets p in, to leave after a delay, and returns its id: PortFull when there is no
// room for a frame, PortDown after close.
func (l *line) put(p passage, after time.Duration) (id uint64, why frame.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return 0, frame.PortDown
	case len(l.items) >= l.size && p.err == nil:
		return 0, frame.PortFull
	}
	l.last++
	p.id = l.last
	l.insert(p, after)
	return p.id, frame.NotDropped
}

// insert puts p in its place. l.mu is held.
func (l *line) insert(p passage, after time.Duration) {
	p.due = time.Now().Add(after)
	at, _ := slices.BinarySearchFunc(l.items, p, func(a, b passage) int {
		if a.due.After(b.due) {
			return 1
		}
		return -1 // behind those due at the same time
	})
	l.items = slices.Insert(l.items, at, p)
	l.change.Broadcast()
}

// hurry makes the frame with this id due now, behind those that are. It is no error if
// it has left.
func (l *line) hurry(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.items, func(p passage) bool { return p.id == id })
	if at < 0 {
		return
	}
	p := l.items[at]
	l.items = slices.Delete(l.items, at, at+1)
	l.insert(p, 0)
}

// take waits for frames that are due and moves them, at most as many as fit, to ps.
func (l *line) take(ps []passage) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case l.closed:
			return 0, net.ErrClosed
		case l.paused:
			return 0, frame.ErrPaused
		}
		now := time.Now()
		for n < min(len(l.items), len(ps)) && !l.items[n].due.After(now) {
			n++
		}
		if n > 0 {
			copy(ps, l.items[:n])
			l.items = slices.Delete(l.items, 0, n)
			return n, nil
		}
		if len(l.items) > 0 {
			l.timer.Reset(l.items[0].due.Sub(now))
		}
		l.change.Wait()
	}
}

// pause makes take return frame.ErrPaused until pause(false).
func (l *line) pause(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = on
	l.change.Broadcast()
}

// resumed waits while the line is paused. It reports false when it is closed.
func (l *line) resumed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.paused && !l.closed {
		l.change.Wait()
	}
	return !l.closed
}

// close makes take return net.ErrClosed and forgets what waits.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.items = true, nil
	l.timer.Stop()
	l.change.Broadcast()
}
