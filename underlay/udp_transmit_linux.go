package underlay

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// maxTries bounds how often one message is sent again because of errors that were
// another's.
const maxTries = 16

// drainLimit is how many entries of an error queue are read at once.
const drainLimit = 64

// transmit sends the messages in the scratch.
func (s *udpSender) transmit(fd uintptr) { s.push(fd, s.msgs[:s.n], s.who[:s.n]) }

// push sends messages. When one is refused it goes on with the next: each costs its own
// copy only. A run that is refused as such is sent again as single datagrams.
//
// With IP_RECVERR an ICMP error about an earlier datagram fails the next send,
// whoever that is for (seen on Linux 6.18). So an error that may be another's is
// believed only once the error queue is empty and the message has been tried
// again. ECONNREFUSED is always another's, for nobody has been asked yet, whatever
// another sender on the same socket has meanwhile taken from the queue.
func (s *udpSender) push(fd uintptr, msgs []sys.Mmsghdr, who []copyOf) {
	tries := 0
	for off := 0; off < len(msgs); {
		n, errno := sys.Sendmmsg(fd, msgs[off:], unix.MSG_DONTWAIT)
		s.sum.calls++
		if errno == unix.EINTR {
			continue
		}
		if errno == 0 {
			s.sum.sent(who[off : off+n])
			off += n
			tries = 0
			if off < len(msgs) {
				// Stopped without saying why; a pending error is gone by that,
				// its entry in the queue is not.
				s.errs.Drain(fd, drainLimit, s.seen)
				s.sum.retries++
			}
			continue
		}
		why, own := verdict(errno)
		if !own {
			drained := s.errs.Drain(fd, drainLimit, s.seen)
			anothers := drained > 0 || errno == unix.ECONNREFUSED
			if tries == 0 || anothers && tries < maxTries {
				tries++
				s.sum.retries++
				continue
			}
		}
		tries = 0
		if who[off].segs > 1 && refused(errno) {
			if errno == unix.EIO {
				s.set.split.Store(true) // for the runs to come
			}
			s.sendApart(fd, &msgs[off], who[off])
			off++
			continue
		}
		s.lose(who[off], why)
		off++
		if errno == unix.EAGAIN {
			// The socket's buffer is full: no room for the rest either.
			for ; off < len(msgs); off++ {
				s.lose(who[off], why)
			}
		}
	}
}

// verdict says why a message was refused, and whether the error is certainly its
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

// txSum adds up what one Send does.
type txSum struct{ datagrams, runs, segments, calls, retries uint64 }

// sent books messages the kernel took.
func (c *txSum) sent(who []copyOf) {
	for i := range who {
		n := uint64(who[i].segs)
		c.datagrams += n
		if n > 1 {
			c.runs++
			c.segments += n
		}
	}
}

// txCounters are one sender's; they are added to once for each Send.
type txCounters struct {
	datagrams, runs, segments, calls, retries        atomic.Uint64
	lost                                             lostCounters
	refused, unreachable, tooBig, prohibited, others atomic.Uint64
}

func (c *txCounters) add(s *txSum) {
	c.datagrams.Add(s.datagrams)
	c.calls.Add(s.calls)
	if s.runs > 0 {
		c.runs.Add(s.runs)
		c.segments.Add(s.segments)
	}
	if s.retries > 0 {
		c.retries.Add(s.retries)
	}
}

func (c *txCounters) addTo(st *Stats) {
	st.TxDatagrams += c.datagrams.Load()
	st.TxRuns += c.runs.Load()
	st.TxSegments += c.segments.Load()
	st.TxCalls += c.calls.Load()
	st.TxRetries += c.retries.Load()
	c.lost.addTo(st)
	st.Errors.Refused += c.refused.Load()
	st.Errors.Unreachable += c.unreachable.Load()
	st.Errors.TooBig += c.tooBig.Load()
	st.Errors.Prohibited += c.prohibited.Load()
	st.Errors.Other += c.others.Load()
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
