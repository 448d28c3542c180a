package afpacket

import (
	"net"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// flush sends the frames built so far.
func (s *sender) flush() {
	if s.out.N > 0 {
		// Control holds the descriptor open as Write does, but senders do not wait for each other.
		if err := s.p.send.Conn.Control(s.call); err != nil {
			s.down = net.ErrClosed
			for _, c := range s.out.Who[:s.out.N] {
				s.Lose(c, frame.PortDown)
			}
		}
	}
	s.out.Clear()
}

func (s *sender) transmit(fd uintptr) { s.push(fd, &s.out) }

// push sends frames. A frame that is refused loses only its own copy. The datagrams of a run that is refused are
// sent one by one.
func (s *sender) push(fd uintptr, t *outbox) {
	for off := 0; off < t.N; {
		n, errno := s.p.sendmmsg(fd, t.Msgs[off:t.N], unix.MSG_DONTWAIT)
		s.Sum.Calls++
		switch who := t.Who[off:t.N]; {
		case errno == unix.EINTR:
		case errno == 0:
			s.Sent(who[:n])
			off += n
		case who[0].Segs > 1 && datagrams.RefusedRun(errno):
			s.sendSingly(fd, &who[0])
			off++
		default:
			if errno == unix.ENXIO && s.down == nil {
				s.down = s.p.dev.Ended(errno)
			}
			off += s.Refused(who, errno, verdict(errno))
		}
	}
}

// verdict returns the reason for an error.
func verdict(e unix.Errno) frame.Reason {
	switch e {
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
		return frame.PortFull
	case unix.EMSGSIZE:
		return frame.TooBig
	case unix.ENETDOWN, unix.EHOSTDOWN:
		return frame.Unreachable
	case unix.ENXIO, unix.ENODEV:
		return frame.PortDown
	}
	return frame.SendFailed
}

// sendSingly sends the datagrams of a run that was refused one by one.
func (s *sender) sendSingly(fd uintptr, who *datagrams.Copy) {
	i, k, set := s.i, s.k, s.set
	d, t := &s.Window[who.D], &s.single
	to := &d.To[who.To]
	s.i, s.k, s.set = who.D, who.To, s.p.sets.Get(d.Set)
	if h, _ := s.nextHop(to); h != nil && h.mac.Load() != 0 {
		c := datagrams.At(d.Parts, 0)
		c.Skip(int(who.Off))
		seg := int(who.Seg)
		off, n := int(who.Off), min(datagrams.Size(d), int(who.Off)+int(who.Segs)*seg)
		for ; off < n; off += seg {
			if !t.Fits(len(d.Parts) + 1) {
				s.push(fd, t)
				t.Clear()
			}
			s.add(t, frame.MACFrom(h.mac.Load()), d, to, &c, off, min(seg, n-off), seg)
		}
		s.push(fd, t)
	} else {
		s.Lose(*who, frame.Unresolved)
	}
	t.Clear()
	s.i, s.k, s.set = i, k, set
}

// loseCopy counts n bytes of the current copy as lost.
func (s *sender) loseCopy(why frame.Reason, n, seg int) {
	s.Lose(datagrams.Copy{D: s.i, Segs: int32(max(1, (n+max(seg, 1)-1)/max(seg, 1))), To: s.k}, why)
}
