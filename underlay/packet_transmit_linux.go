package underlay

import (
	"net"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// flush sends the frames built so far and forgets them.
func (s *packetSender) flush() {
	if s.out.n > 0 {
		// Control, not Write: it holds the descriptor open as well, and does not
		// make the senders wait for each other.
		if err := s.p.send.Conn.Control(s.call); err != nil {
			s.down = net.ErrClosed
			for _, c := range s.out.who[:s.out.n] {
				s.lose(c.copyOf, frame.PortDown)
			}
		}
	}
	s.out.clear()
}

// clear forgets what was built: the frames are not ours any more.
func (t *packetBatch) clear() {
	clear(t.iov)
	t.n, t.iov = 0, t.iov[:0]
}

func (s *packetSender) transmit(fd uintptr) { s.push(fd, &s.out) }

// push sends frames. When one is refused it goes on with the next: each costs its own copy
// only. A run that is refused as such is sent again as single datagrams.
func (s *packetSender) push(fd uintptr, t *packetBatch) {
	for off := 0; off < t.n; {
		n, errno := s.p.sendmmsg(fd, t.msgs[off:t.n], unix.MSG_DONTWAIT)
		s.sum.Calls++
		switch {
		case errno == unix.EINTR:
			continue
		case errno == 0:
			for i := range t.who[off : off+n] {
				s.sum.Sent(int(t.who[off+i].segs))
			}
			off += n
			continue
		case t.who[off].segs > 1 && refused(errno):
			s.cutApart(fd, &t.who[off])
			off++
			continue
		case errno == unix.ENXIO && s.down == nil:
			s.down = s.p.dev.Ended(errno)
		}
		why := packetVerdict(errno)
		s.lose(t.who[off].copyOf, why)
		off++
		if errno == unix.EAGAIN {
			// The socket's buffer is full: no room for the rest either.
			for ; off < t.n; off++ {
				s.lose(t.who[off].copyOf, why)
			}
		}
	}
}

// packetVerdict says why a frame was refused.
func packetVerdict(e unix.Errno) frame.Reason {
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

// cutApart sends the datagrams of a run that was refused one by one.
func (s *packetSender) cutApart(fd uintptr, who *packetCopy) {
	i, k, set := s.i, s.k, s.set
	d, t := &s.win[who.d], &s.apart
	to := &d.To[who.to]
	s.i, s.k, s.set = who.d, who.to, s.p.sets.Get(d.Set)
	if h, _ := s.nextHop(to); h != nil && h.mac.Load() != 0 {
		c := datagrams.At(d.Parts, 0)
		c.Skip(int(who.off))
		seg := int(who.seg)
		off, n := int(who.off), min(datagrams.Size(d), int(who.off)+int(who.segs)*seg)
		for ; off < n; off += seg {
			if t.n == chunk || len(t.iov)+len(d.Parts)+1 > allIov {
				s.push(fd, t)
				t.clear()
			}
			s.add(t, frame.MACFrom(h.mac.Load()), d, to, &c, off, min(seg, n-off), seg)
		}
		s.push(fd, t)
	} else {
		s.lose(who.copyOf, frame.Unresolved)
	}
	t.clear()
	s.i, s.k, s.set = i, k, set
}

// lose books what one message carries. A copy that is lost in several pieces, which follow
// each other, is one copy lost.
func (s *packetSender) lose(c copyOf, why frame.Reason) {
	if c.d != s.last.d || c.to != s.last.to {
		datagrams.Lose(&s.win[c.d], why)
	}
	s.last = c
	s.count.Lost[why].Add(uint64(c.segs))
}

// loseCopy books n bytes of the copy in hand.
func (s *packetSender) loseCopy(why frame.Reason, n, seg int) {
	s.lose(copyOf{d: s.i, segs: int32(max(1, (n+max(seg, 1)-1)/max(seg, 1))), to: s.k}, why)
}

// loseAll books every copy of the datagram in hand.
func (s *packetSender) loseAll(why frame.Reason) {
	d := &s.win[s.i]
	segs := datagrams.Segments(d)
	for range d.To {
		datagrams.Lose(d, why)
		s.count.Lost[why].Add(uint64(segs))
	}
}
