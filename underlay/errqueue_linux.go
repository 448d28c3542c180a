package underlay

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// ICMP errors about earlier datagrams wait in the error queues of the transmit sockets (IP_RECVERR). Two kinds of readers
// take them: a Sender whose send failed, and a goroutine that sleeps until there are errors.
//
// The goroutine is necessary: among the sockets of a port the kernel selects the receiver of an ICMP error by a hash of the
// addresses and ports (the lookup in __udp4_lib_err and __udp6_lib_err, Linux 6.18). It need not be the socket that
// sent, and may be one that no Sender uses any more.

// drainLimit is the number of entries of an error queue that are read at once.
const drainLimit = 64

// An errReader is scratch memory for reading error queues, for one user at a time.
type errReader struct {
	u     *base
	queue *sys.ErrorQueue
	seen  func(*sys.QueuedError) // entry, made once
	sock  *txSock                // whose entries are read
	long  bool                   // an entry had the interface's MTU
}

func newErrReader(u *base) *errReader {
	r := &errReader{u: u, queue: sys.NewErrorQueue()}
	r.seen = r.entry
	return r
}

// read counts and reports the entries in the error queue of a socket, at most drainLimit, and returns their number.
func (r *errReader) read(fd uintptr, s *txSock) int {
	r.sock, r.long = s, false
	n := r.queue.Drain(fd, drainLimit, r.seen)
	if n > 0 {
		s.taken.Add(uint32(n))
	}
	if r.long {
		s.tooLong.Add(1)
	}
	return n
}

func (r *errReader) entry(e *sys.QueuedError) {
	if e.Errno == unix.EMSGSIZE && e.Origin == unix.SO_EE_ORIGIN_LOCAL {
		r.long = true
	}
	if r.sock.quiet && e.Origin != unix.SO_EE_ORIGIN_LOCAL {
		return
	}
	r.u.countError(e)
}

// An errWatch waits for errors of all transmit sockets.
//
// The sockets are in an epoll instance of their own, for errors only, and not in the runtime's poller. That one also
// waits for room to send, which every transmitted datagram makes, so each Send would wake a thread (a quarter of the
// cost of small datagrams on loopback).
type errWatch struct {
	file  *os.File // epoll instance, which the runtime's poller waits for
	raw   syscall.RawConn
	err   *errReader
	ready [16]unix.EpollEvent

	mu    sync.Mutex
	socks map[int32]*txSock // open sockets by descriptor
}

func newErrWatch(u *base) (*errWatch, error) {
	file, raw, err := sys.NewEpoll("underlay: error queues")
	if err != nil {
		return nil, err
	}
	return &errWatch{file: file, raw: raw, err: newErrReader(u), socks: make(map[int32]*txSock)}, nil
}

// add watches a socket until it is closed.
func (w *errWatch) add(s *txSock) error {
	if err := sys.Control(s.raw, func(fd int) error { s.fd, s.watch = int32(fd), w; return nil }); err != nil {
		return err
	}
	w.mu.Lock()
	w.socks[s.fd] = s
	w.mu.Unlock()
	return sys.EpollAdd(w.raw, s.raw, unix.EPOLLERR|unix.EPOLLET, s.fd)
}

// Close closes the socket and stops watching it.
func (s *txSock) Close() error {
	if w := s.watch; w != nil {
		w.mu.Lock()
		if w.socks[s.fd] == s {
			delete(w.socks, s.fd)
		}
		w.mu.Unlock()
	}
	return s.sock.Close()
}

// run reads error queues until the watch is closed.
func (w *errWatch) run() {
	_ = w.raw.Read(func(epfd uintptr) bool {
		for {
			n, err := unix.EpollWait(int(epfd), w.ready[:], 0)
			if err == unix.EINTR {
				continue
			}
			if n <= 0 {
				return false
			}
			for i := range w.ready[:n] {
				w.read(w.ready[i].Fd)
			}
		}
	})
}

func (w *errWatch) read(fd int32) {
	w.mu.Lock()
	s := w.socks[fd]
	w.mu.Unlock()
	if s == nil { // closed meanwhile
		return
	}
	_ = s.raw.Control(func(fd uintptr) { // an error means that the socket is closed
		for w.err.read(fd, s) == drainLimit {
		}
	})
}

// countError counts an entry of an error queue, and reports it.
func (u *base) countError(e *sys.QueuedError) {
	c := &u.errors
	lost := unreachable(e)
	if f := u.unreachable.Load(); f != nil && lost {
		(*f)(e.Dst, e.Quoted)
	}
	errno := e.Errno
	if errno == unix.EPROTO && lost { // ICMPv6 parameter problem
		errno = unix.ENOPROTOOPT
	}
	switch errno {
	case unix.ECONNREFUSED, unix.ENOPROTOOPT:
		c.Refused.Add(1)
	case unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EHOSTDOWN, unix.ENONET:
		c.Unreachable.Add(1)
	case unix.EMSGSIZE:
		c.TooBig.Add(1)
		if f := u.pathMTU.Load(); f != nil && e.Info != 0 {
			(*f)(e.Dst, int(e.Info), e.Quoted)
		}
	case unix.EACCES:
		c.Prohibited.Add(1)
	default:
		c.Other.Add(1)
	}
}

// unreachable reports whether an entry is about a datagram that did not arrive, for another reason than its
// length.
func unreachable(e *sys.QueuedError) bool {
	const ( // RFC 792; RFC 4443, sections 3.1, 3.3 and 3.4
		unreachable4, exceeded4        = 3, 11
		port4, needed, route4          = 3, 4, 5
		unreachable6, port6, exceeded6 = 1, 4, 3
		problem6, unknownHeader        = 4, 1
	)
	switch e.Origin {
	case unix.SO_EE_ORIGIN_ICMP:
		if e.Type == unreachable4 { // a tunnel has no ports and no source routes: not for the inner sender (RFC 2003, section 4.1)
			return e.Code != port4 && e.Code != needed && e.Code != route4
		}
		return e.Type == exceeded4
	case unix.SO_EE_ORIGIN_ICMP6:
		return e.Type == unreachable6 && e.Code != port6 || e.Type == exceeded6 || e.Type == problem6 && e.Code == unknownHeader
	}
	return false
}

// PathMTU sets the function that is called if a datagram was too big, with the length of the longest IP packet
// that passes, and the quoted start of the UDP payload or, of an IP, of the inner packet. There are two causes:
//
//   - An ICMP error of a router (fragmentation needed, RFC 1191; packet too big, RFC 8201). It quotes at
//     most 128 bytes here. A router may quote only eight bytes after the IP header (RFC 792), so quoted may
//     be empty. Nothing of it is authenticated.
//   - The datagram is longer than the interface's MTU. quoted is empty, and the endpoint's port may be 0
//     (Linux 6.18).
//
// Errors without an MTU, as of routers older than RFC 1191, are only counted. The last f counts.
//
// Senders call f, and a goroutine that waits for errors, concurrently. It must not wait or keep quoted. Close
// waits until f has returned.
func (u *base) PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte)) { u.pathMTU.Store(&f) }
