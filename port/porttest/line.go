package porttest

import (
	"net"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/delay"
)

// A passage is a frame on its way through a Faulty.
type passage struct {
	out frame.Out // F is a clone; only F is set on the way in
	err error     // in place of a frame: what Read of the port returned
}

// A line is a bounded queue that frames leave when they are due, those that are due at
// once in the order they came. One goroutine takes; any number put.
type line struct {
	mu     sync.Mutex
	change sync.Cond // something take may wait for
	queue  delay.Queue[passage]
	size   int
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

// put lets p in, to leave after a delay: PortFull when there is no room for a frame, PortDown after
// close.
func (l *line) put(p passage, after time.Duration) (*delay.Item[passage], frame.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, frame.PortDown
	case l.queue.Len() >= l.size && p.err == nil:
		return nil, frame.PortFull
	}
	l.change.Broadcast()
	return l.queue.Put(p, after), frame.NotDropped
}

// hurry makes a frame due now, behind those that are. It is no error if it has left.
func (l *line) hurry(x *delay.Item[passage]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.Remove(x) {
		l.queue.Put(x.V, 0)
		l.change.Broadcast()
	}
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
		for ; n < len(ps); n++ {
			x := l.queue.Next(now)
			if x == nil {
				break
			}
			ps[n] = x.V
		}
		if n > 0 {
			return n, nil
		}
		if x := l.queue.First(); x != nil {
			l.timer.Reset(x.Due.Sub(now))
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
	l.closed = true
	l.queue.Clear()
	l.timer.Stop()
	l.change.Broadcast()
}
