package datagrams

import (
	"net"
	"time"
)

// BackOff waits after errors in a row, 1 ms at first and at most 100 ms, so that a lasting error does not keep a processor
// busy. It ends at Close.
func BackOff(failed int, done <-chan struct{}) error {
	const free = 8
	if failed < free {
		return nil
	}
	t := time.NewTimer(min(time.Millisecond<<min(failed-free, 7), 100*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-done:
		return net.ErrClosed
	}
}
