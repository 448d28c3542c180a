package underlay

import (
	"math/bits"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

const (
	chunk  = 128  // messages handed to the kernel at once
	window = 64   // datagrams sorted by socket at once
	maxIov = 1024 // UIO_MAXIOV: pieces of memory the kernel takes for one message
	txCtl  = 2 * sys.CmsgInt
)

// A udpSender is one worker's scratch over the shared transmit sockets.
//
// It sorts a window of datagrams by socket, keeping their order, and builds one
// message for each copy; the copies of a datagram share its pieces of memory and
// its control messages. What belongs to one socket goes out by sendmmsg, at most
// chunk messages at a time.
type udpSender struct {
	u    *UDP
	call func(fd uintptr) // transmit, made once
	errs *sys.ErrorQueue
	seen func(*sys.QueuedError) // countError, made once

	win  []frame.Datagram // the window in hand
	next [window]uint8    // the datagram after this one on the same socket
	n    int              // messages built
	ctls int              // control buffers used
	sent uint64
	down bool // the underlay was closed under us

	msgs  [chunk]sys.Mmsghdr
	names [chunk]sys.Sockaddr
	owner [chunk]uint8 // whose copy a message is: an index of win
	ctl   [chunk][txCtl]byte
	iov   []unix.Iovec

	count txCounters
}

func newUDPSender(u *UDP) *udpSender {
	s := &udpSender{u: u, errs: sys.NewErrorQueue(), iov: make([]unix.Iovec, 0, 4*chunk)}
	s.call, s.seen = s.transmit, s.countError
	for i := range s.msgs {
		s.msgs[i].Hdr.Name = (*byte)(unsafe.Pointer(&s.names[i]))
	}
	return s
}

// Send implements [frame.Sender]. It returns net.ErrClosed after Close.
//
// A run (Seg > 0) is sent as the datagrams it stands for. A datagram to an endpoint
// of the other address family is lost as Unreachable. When a socket's buffer is full,
// up to 128 datagrams that were next on that source port are lost as PortFull.
func (s *udpSender) Send(ds []frame.Datagram) error {
	s.sent, s.down = 0, false
	for len(ds) > 0 {
		n := min(window, len(ds))
		s.win = ds[:n:n]
		s.sendWindow()
		ds = ds[n:]
	}
	s.win = nil
	if s.sent > 0 {
		s.count.datagrams.Add(s.sent)
	}
	if s.down {
		return net.ErrClosed
	}
	return nil
}

// sendWindow sends the datagrams in s.win, socket by socket.
func (s *udpSender) sendWindow() {
	var first, last [2 * maxTxPorts]uint8
	var used uint32 // bit k: something for socket k
	for i := range s.win {
		d := &s.win[i]
		d.Lost, d.Drop = 0, frame.NotDropped
		k := txIndex(d.Flow, len(s.u.tx))
		if !d.DF {
			k += maxTxPorts
		}
		if used&(1<<k) == 0 {
			used |= 1 << k
			first[k] = uint8(i)
		} else {
			s.next[last[k]] = uint8(i)
		}
		last[k] = uint8(i)
	}
	for ; used != 0; used &= used - 1 {
		k := bits.TrailingZeros32(used)
		t, why := s.socket(k)
		for i := first[k]; ; i = s.next[i] {
			if t != nil {
				s.add(t, i)
			} else {
				s.loseAll(i, why)
			}
			if i == last[k] {
				break
			}
		}
		if t != nil {
			s.flush(t)
		}
	}
}

// socket returns transmit socket k, those without DF behind those with it.
func (s *udpSender) socket(k int) (*txSock, frame.Reason) {
	if k < maxTxPorts {
		return s.u.tx[k], 0
	}
	p := s.u.plain.Load()
	if p == nil {
		p = s.u.openPlain()
	}
	switch {
	case p.err != nil:
		return nil, frame.SendFailed
	case p.socks == nil: // closed
		s.down = true
		return nil, frame.PortDown
	}
	return p.socks[k-maxTxPorts], 0
}

// add builds the messages of datagram i, and sends whenever the scratch is full.
func (s *udpSender) add(t *txSock, i uint8) {
	d := &s.win[i]
	if len(d.Parts) > maxIov {
		s.loseAll(i, frame.SendFailed)
		return
	}
	n, seg := size(d), int(d.Seg)
	if seg == 0 || seg >= n {
		s.addPart(t, i, 0, n)
		return
	}
	for off := 0; off < n; off += seg {
		s.addPart(t, i, off, min(seg, n-off))
	}
}

// addPart builds a message to each endpoint of datagram i with its bytes
// [off, off+n).
func (s *udpSender) addPart(t *txSock, i uint8, off, n int) {
	d := &s.win[i]
	for to := d.To; len(to) > 0; {
		if s.n == chunk || s.ctls == chunk || len(s.iov)+len(d.Parts) > maxIov {
			s.flush(t)
		}
		iov := s.pieces(d.Parts, off, n)
		ctl := s.control(d)
		for len(to) > 0 && s.n < chunk {
			m := &s.msgs[s.n].Hdr
			m.Namelen = sys.PutSockaddr(&s.names[s.n], &to[0], s.u.is4)
			to = to[1:]
			if m.Namelen == 0 {
				s.lose(i, frame.Unreachable)
				continue
			}
			m.Iov = unsafe.SliceData(iov)
			m.SetIovlen(len(iov))
			m.Control = unsafe.SliceData(ctl)
			m.SetControllen(len(ctl))
			s.owner[s.n] = i
			s.n++
		}
	}
}

// pieces appends bytes [off, off+n) of the parts to the scratch.
func (s *udpSender) pieces(parts [][]byte, off, n int) []unix.Iovec {
	start := len(s.iov)
	for _, p := range parts {
		if off >= len(p) {
			off -= len(p)
			continue
		}
		p = p[off:]
		off = 0
		if len(p) > n {
			p = p[:n]
		}
		if len(p) == 0 {
			break
		}
		n -= len(p)
		v := unix.Iovec{Base: unsafe.SliceData(p)}
		v.SetLen(len(p))
		s.iov = append(s.iov, v)
	}
	return s.iov[start:]
}

// control returns the control messages of a datagram: none when the sockets'
// defaults are right.
func (s *udpSender) control(d *frame.Datagram) []byte {
	ttl := d.TTL != 0 && (int(d.TTL) != s.u.cfg.TTL || isGroup(&d.To[0]))
	if !ttl && d.TOS == 0 {
		return nil
	}
	b, n := &s.ctl[s.ctls], 0
	s.ctls++
	level, typeTOS, typeTTL := unix.IPPROTO_IPV6, unix.IPV6_TCLASS, unix.IPV6_HOPLIMIT
	if s.u.is4 {
		level, typeTOS, typeTTL = unix.IPPROTO_IP, unix.IP_TOS, unix.IP_TTL
	}
	if d.TOS != 0 {
		n += sys.PutCmsgInt(b[n:], level, typeTOS, int(d.TOS))
	}
	if ttl {
		n += sys.PutCmsgInt(b[n:], level, typeTTL, int(d.TTL))
	}
	return b[:n]
}

// flush sends the messages built so far and forgets them.
func (s *udpSender) flush(t *txSock) {
	if s.n > 0 {
		// Control, not Write: it holds the descriptor open as well, and does not
		// make the senders wait for each other.
		if err := t.raw.Control(s.call); err != nil {
			s.down = true
			for _, i := range s.owner[:s.n] {
				s.lose(i, frame.PortDown)
			}
		}
	}
	clear(s.iov) // the frames are not ours any more
	s.n, s.ctls, s.iov = 0, 0, s.iov[:0]
}

func (s *udpSender) lose(i uint8, why frame.Reason) {
	lose(&s.win[i], why)
	s.count.lost[why].Add(1)
}

func (s *udpSender) loseAll(i uint8, why frame.Reason) {
	for range s.win[i].To {
		s.lose(i, why)
	}
}
