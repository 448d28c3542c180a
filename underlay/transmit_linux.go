package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// maxTries bounds how often a message is sent again because of errors about other datagrams.
const maxTries = 16

// transmit sends the messages in the scratch memory.
func (s *sender) transmit(fd uintptr) { s.push(fd, s.out.Msgs[:s.out.N], s.out.Who[:s.out.N]) }

// push sends messages. After one is refused it goes on with the next, so that each error costs one copy. The datagrams
// of a refused run are sent singly.
//
// With IP_RECVERR, an ICMP error about an earlier datagram fails the next send, to any destination (Linux 6.18). So
// push believes an error that may be about another datagram only after it has emptied the error queue, no other reader
// has taken an entry meanwhile, and the message has failed again. ECONNREFUSED is always about an earlier datagram,
// because this one has not been sent yet; EMSGSIZE with an entry of the local kernel is about this one.
func (s *sender) push(fd uintptr, msgs []sys.Mmsghdr, who []datagrams.Copy) {
	tries := 0
	for off := 0; off < len(msgs); {
		taken, tooLongs := s.sock.taken.Load(), s.sock.tooLong.Load()
		n, errno := s.u.sendmmsg(fd, msgs[off:], unix.MSG_DONTWAIT)
		s.Sum.Calls++
		if errno == unix.EINTR {
			continue
		}
		if errno == unix.EINVAL && s.unlabel(msgs[off:]) {
			s.Sum.Retries++
			continue
		}
		if errno == 0 {
			if s.bare {
				s.u.refused()
			}
			s.Sent(who[off : off+n])
			off += n
			tries = 0
			if off < len(msgs) {
				// The send stopped without an error. That clears a pending error, but not its entry in the queue.
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
