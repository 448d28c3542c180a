package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// maxTries bounds how often one datagram is sent again because of errors that were
// another's.
const maxTries = 16

// drainLimit is how many entries of an error queue are read at once.
const drainLimit = 64

// transmit sends the messages in the scratch. When one is refused it goes on with
// the next: each costs its own copy only.
//
// With IP_RECVERR an ICMP error about an earlier datagram fails the next send,
// whoever that is for (seen on Linux 6.18). So an error that may be another's is
// believed only once the error queue is empty and the datagram has been tried
// again. ECONNREFUSED is always another's, for nobody has been asked yet, whatever
// another sender on the same socket has meanwhile taken from the queue.
func (s *udpSender) transmit(fd uintptr) {
	calls, retries := uint64(0), uint64(0)
	tries := 0
	for off := 0; off < s.n; {
		n, errno := sys.Sendmmsg(fd, s.msgs[off:s.n], unix.MSG_DONTWAIT)
		calls++
		if errno == unix.EINTR {
			continue
		}
		if errno == 0 {
			off += n
			s.sent += uint64(n)
			tries = 0
			if off < s.n {
				// Stopped without saying why; a pending error is gone by that,
				// its entry in the queue is not.
				s.errs.Drain(fd, drainLimit, s.seen)
				retries++
			}
			continue
		}
		why, own := verdict(errno)
		if !own {
			drained := s.errs.Drain(fd, drainLimit, s.seen)
			anothers := drained > 0 || errno == unix.ECONNREFUSED
			if tries == 0 || anothers && tries < maxTries {
				tries++
				retries++
				continue
			}
		}
		tries = 0
		s.lose(s.owner[off], why)
		off++
		if errno == unix.EAGAIN {
			// The socket's buffer is full: no room for the rest either.
			for ; off < s.n; off++ {
				s.lose(s.owner[off], why)
			}
		}
	}
	s.count.calls.Add(calls)
	if retries > 0 {
		s.count.retries.Add(retries)
	}
}

// verdict says why a datagram was refused, and whether the error is certainly its
// own. ENOBUFS is a queue of the interface that dropped the packet, which is told
// only with IP_RECVERR. EINVAL is a destination that cannot be reached from our
// source address, or port 0.
func verdict(e unix.Errno) (why frame.Reason, own bool) {
	switch e {
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
		return frame.PortFull, true
	case unix.EMSGSIZE:
		return frame.TooBig, false
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, unix.EHOSTDOWN,
		unix.ENONET, unix.EADDRNOTAVAIL, unix.EINVAL:
		return frame.Unreachable, false
	}
	return frame.SendFailed, false
}

// countError books one entry of an error queue.
func (s *udpSender) countError(e *sys.QueuedError) {
	c := &s.count
	switch e.Errno {
	case unix.ECONNREFUSED:
		c.refused.Add(1)
	case unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EHOSTDOWN, unix.ENONET:
		c.unreachable.Add(1)
	case unix.EMSGSIZE:
		c.tooBig.Add(1)
		if f := s.u.pathMTU.Load(); f != nil {
			(*f)(e.Dst, int(e.Info), e.Quoted)
		}
	case unix.EACCES:
		c.prohibited.Add(1)
	default:
		c.others.Add(1)
	}
}
