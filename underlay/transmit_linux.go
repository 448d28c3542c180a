package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// maxTries bounds how often one message is sent again because of errors that were
// another's.
const maxTries = 16

// transmit sends the messages in the scratch.
func (s *sender) transmit(fd uintptr) { s.push(fd, s.out.Msgs[:s.out.N], s.out.Who[:s.out.N]) }

// push sends messages. When one is refused it goes on with the next: each costs its own
// copy only. A run that is refused as such is sent again as single datagrams.
//
// With IP_RECVERR an ICMP error about an earlier datagram fails the next send,
// whoever that is for (seen on Linux 6.18). So an error that may be another's is
// believed only once the error queue is empty, nobody else has taken anything from it
// meanwhile, and the message has been tried again. ECONNREFUSED is always another's, for
// nobody has been asked yet; EMSGSIZE beside an entry of our own kernel is its own.
func (s *sender) push(fd uintptr, msgs []sys.Mmsghdr, who []datagrams.Copy) {
	tries := 0
	for off := 0; off < len(msgs); {
		taken, tooLongs := s.sock.taken.Load(), s.sock.tooLong.Load()
		n, errno := s.u.sendmmsg(fd, msgs[off:], unix.MSG_DONTWAIT)
		s.Sum.Calls++
		if errno == unix.EINTR {
			continue
		}
		if errno == 0 {
			s.Sent(who[off : off+n])
			off += n
			tries = 0
			if off < len(msgs) {
				// Stopped without saying why; a pending error is gone by that,
				// its entry in the queue is not.
				s.errs.read(fd, s.sock)
				s.Sum.Retries++
			}
			continue
		}
		why, own := datagrams.Verdict(errno)
		if !own {
			s.errs.read(fd, s.sock)
			anothers := s.sock.taken.Load() != taken || errno == unix.ECONNREFUSED
			tooLong := errno == unix.EMSGSIZE && s.sock.tooLong.Load() != tooLongs
			if !tooLong && (tries == 0 || anothers && tries < maxTries) {
				tries++
				s.Sum.Retries++
				continue
			}
		}
		tries = 0
		if who[off].Segs > 1 && datagrams.RefusedRun(errno) {
			if errno == unix.EIO {
				s.set.giveUp()
			}
			s.sendSingly(fd, &msgs[off], who[off])
			off++
			continue
		}
		off += s.Refused(who[off:], errno, why)
	}
}
