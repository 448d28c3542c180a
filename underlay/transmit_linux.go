package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// maxTries bounds how often one message is sent again because of errors that were
// another's.
const maxTries = 16

// transmit sends the messages in the scratch.
func (s *sender) transmit(fd uintptr) { s.push(fd, s.msgs[:s.n], s.who[:s.n]) }

// push sends messages. When one is refused it goes on with the next: each costs its own
// copy only. A run that is refused as such is sent again as single datagrams.
//
// With IP_RECVERR an ICMP error about an earlier datagram fails the next send,
// whoever that is for (seen on Linux 6.18). So an error that may be another's is
// believed only once the error queue is empty, nobody else has taken anything from it
// meanwhile, and the message has been tried again. ECONNREFUSED is always another's, for
// nobody has been asked yet; EMSGSIZE beside an entry of our own kernel is its own.
func (s *sender) push(fd uintptr, msgs []sys.Mmsghdr, who []copyOf) {
	tries := 0
	for off := 0; off < len(msgs); {
		taken, tooLongs := s.sock.taken.Load(), s.sock.tooLong.Load()
		n, errno := s.u.sendmmsg(fd, msgs[off:], unix.MSG_DONTWAIT)
		s.sum.Calls++
		if errno == unix.EINTR {
			continue
		}
		if errno == 0 {
			for i := range who[off : off+n] {
				s.sum.Sent(int(who[off+i].segs))
			}
			off += n
			tries = 0
			if off < len(msgs) {
				// Stopped without saying why; a pending error is gone by that,
				// its entry in the queue is not.
				s.errs.read(fd, s.sock)
				s.sum.Retries++
			}
			continue
		}
		why, own := verdict(errno)
		if !own {
			s.errs.read(fd, s.sock)
			anothers := s.sock.taken.Load() != taken || errno == unix.ECONNREFUSED
			tooLong := errno == unix.EMSGSIZE && s.sock.tooLong.Load() != tooLongs
			if !tooLong && (tries == 0 || anothers && tries < maxTries) {
				tries++
				s.sum.Retries++
				continue
			}
		}
		tries = 0
		if who[off].segs > 1 && refused(errno) {
			if errno == unix.EIO {
				s.set.giveUp()
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
// source address, or port 0; ENODEV a device that is gone.
func verdict(e unix.Errno) (why frame.Reason, own bool) {
	switch e {
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
		return frame.PortFull, true
	case unix.EMSGSIZE:
		return frame.TooBig, false
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, unix.EHOSTDOWN,
		unix.ENONET, unix.EADDRNOTAVAIL, unix.EINVAL, unix.ENODEV, unix.ENXIO:
		return frame.Unreachable, false
	}
	return frame.SendFailed, false
}
