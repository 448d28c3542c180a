package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
)

// A groupReader receives from the sockets of all multicast groups. It waits for their epoll instance, for which the
// runtime's poller waits, so that groups can be joined and left during a Read.
type groupReader struct {
	*reader
	g     *groups
	from  func(fd uintptr) // receive, made once
	ready [1]unix.EpollEvent
}

func newGroupReader(g *groups) *groupReader {
	r := &groupReader{reader: newReader(g.u, nil), g: g}
	r.wait, r.call, r.from = g.raw, r.recv, r.receive
	return r
}

// recv is called when a socket may be readable; it returns false to be called again. It reads one socket at a time.
// The kernel then moves that socket to the end of the ready list, so that all sockets get their turn (ep_send_events,
// Linux 6.18).
func (r *groupReader) recv(epfd uintptr) bool {
	for {
		n, err := unix.EpollWait(int(epfd), r.ready[:], 0)
		switch {
		case err == unix.EINTR, err == nil && n == 0 && r.Poll.Again():
			continue
		case err != nil:
			r.Errno, _ = err.(unix.Errno)
			return true
		case n == 0:
			r.Rest()
			return false
		}
		s := r.g.numbered(r.ready[0].Fd)
		if s == nil || s.raw.Control(r.from) != nil { // left meanwhile
			continue
		}
		if r.N > 0 || r.Errno != 0 {
			return true
		}
	}
}

// receive reads one socket.
func (r *groupReader) receive(fd uintptr) {
	r.prepare()
	r.Take(fd)
}

var _ frame.Reader = (*groupReader)(nil)
