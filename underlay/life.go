package underlay

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A life ends the Reads of an underlay.
type life struct {
	paused atomic.Bool
	done   chan struct{} // closed by Close
}

// pausedUntil returns the read deadline: in the past if paused, else none.
func pausedUntil(on bool) (t time.Time) {
	if on {
		t = time.Unix(1, 0)
	}
	return t
}

// stopped returns the error of a Read that need not ask the socket.
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
