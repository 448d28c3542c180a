package main

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// tapRead is the way used now: read(2) until the device is empty, one packet a system
// call, then wait. The read that says EAGAIN is part of the price, once a batch; so is
// poll. (Here it is poll(2) and not the poller of Go: group D compares those.)
type tapRead struct {
	fd  int
	buf []byte
}

func newTapRead() (taker, error) {
	fd, err := openTAP(unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &tapRead{fd, make([]byte, batch*smallRoom)}, nil
}

func (t *tapRead) Close() { unix.Close(t.fd) }

func (t *tapRead) take() (int, error) {
	for n := range batch {
		got, e := sys.ReadFD(uintptr(t.fd), t.buf[n*smallRoom:(n+1)*smallRoom])
		switch {
		case e == unix.EAGAIN && n == 0:
			return 0, wait(t.fd)
		case e == unix.EAGAIN:
			return n, nil
		case e != 0:
			return n, fmt.Errorf("read: %w", e)
		case got < vnetHeader+smallFrame:
			return n, fmt.Errorf("read: a packet of %d bytes", got)
		}
	}
	return batch, nil
}
