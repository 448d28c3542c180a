package underlay

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A life is what ends the Reads of an underlay.
type life struct {
	paused atomic.Bool
	done   chan struct{} // closed by Close
}

// pausedUntil returns the deadline that reads have: one that is over, or none.
func pausedUntil(on bool) (t time.Time) {
	if on {
		t = time.Unix(1, 0)
	}
	return t
}

// stopped returns what a Read returns that has no need to ask a socket.
func (l *life) stopped() error {
	select {
	case <-l.done:
		return net.ErrClosed
	default:
	}
	if l.paused.Load() {
		return frame.ErrPaused
	}
	return nil
}
