package underlay

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// On systems whose calls cannot return at once, a call may wait for room in a socket's buffer for as long as patience. If it has
// waited in vain, there are as many tries more: one whose goroutine gets no processor until its time is over fails without a look at
// the buffer.
const (
	patience = time.Millisecond
	tries    = 5
)

// A portableSender holds one worker's scratch memory for sending through the shared sockets. It sends a window of
// datagrams socket by socket, keeps their order, cuts runs, and copies the payload of a single one once for all its
// copies.
type portableSender struct {
	u *Portable
	datagrams.Ledger
	down  bool                                 // the underlay has been closed
	socks [datagrams.MaxWindow]*portableSocket // of the window, nil if done

	n     int    // messages gathered
	buf   []byte // their payloads, of capacity longest
	marks marks  // of all of them
	msgs  []ipv4.Message
	addrs [portableBatch]net.UDPAddr
	to    [portableBatch]netip.AddrPort
	who   [portableBatch]datagrams.Copy
}

// longest is longer than any datagram.
const longest = 1 << 16

func newPortableSender(u *Portable) *portableSender {
	s := &portableSender{u: u, buf: make([]byte, 0, longest), msgs: make([]ipv4.Message, portableBatch)}
	for i := range s.msgs {
		s.addrs[i].IP = make(net.IP, net.IPv6len)
		s.msgs[i].Addr, s.msgs[i].Buffers = &s.addrs[i], make([][]byte, 1)
	}
	return s
}

// Send implements [frame.Sender]. It returns net.ErrClosed after Close. Losses have the same reasons as those of [UDP].
func (s *portableSender) Send(ds []frame.Datagram) error {
	s.down = false
	s.Ledger.Send(ds, s.window)
	if s.down {
		return net.ErrClosed
	}
	return nil
}

// window sends the datagrams in s.Window.
func (s *portableSender) window() {
	for i := range s.Window {
		d := &s.Window[i]
		d.Lost, d.Drop, s.socks[i] = 0, frame.NotDropped, nil
		if set := s.u.sets.Get(d.Set); set != nil {
			if socks := set.socks.Load(); socks != nil {
				s.socks[i] = (*socks)[datagrams.Index(d.Flow, len(*socks))]
				continue
			}
		}
		s.LoseAll(uint8(i), frame.SendFailed)
	}
	for i, t := range s.socks[:len(s.Window)] {
		if t == nil {
			continue
		}
		for k := i; k < len(s.Window); k++ {
			if s.socks[k] == t {
				s.socks[k] = nil
				s.add(t, uint8(k))
			}
		}
		s.flush(t)
	}
}

// add gathers the copies of datagram i, those of a run endpoint by endpoint, so that losses are counted once for each
// endpoint.
func (s *portableSender) add(t *portableSocket, i uint8) {
	d := &s.Window[i]
	m := marks{d.TOS, cmp.Or(d.TTL, uint8(s.u.cfg.DefaultTTL)), cmp.Or(d.TTL, 1), d.DF}
	if m != s.marks {
		s.flush(t)
		s.marks = m
	}
	if d.Seg == 0 {
		s.copies(t, i, 0, len(d.To))
		return
	}
	for k := range d.To {
		if d.To[k].Is4() == s.u.is4 {
			s.copies(t, i, k, k+1)
			continue
		}
		s.flush(t) // count the losses of other endpoints first
		s.Lose(datagrams.Copy{D: i, Segs: int32(datagrams.Segments(d)), To: int32(k)}, frame.Unreachable)
	}
}

// copies gathers the copies of datagram i to some endpoints, and cuts runs.
func (s *portableSender) copies(t *portableSocket, i uint8, from, to int) {
	d := &s.Window[i]
	size := datagrams.Size(d)
	seg := max(cmp.Or(int(d.Seg), size), 1)
	c := datagrams.At(d.Parts, 0)
	for off := 0; off == 0 || off < size; off += seg {
		n := min(seg, size-off)
		if n > longest {
			s.LoseAll(i, frame.TooBig)
			return
		}
		if len(s.buf)+n > longest {
			s.flush(t)
		}
		start := len(s.buf)
		for left := n; left > 0; {
			p := c.Next(left)
			s.buf = append(s.buf, p...)
			left -= len(p)
		}
		payload := s.buf[start:]
		for k := from; k < to; k++ {
			if s.n == portableBatch {
				s.flush(t)
				s.buf = append(s.buf, payload...) // moves it to the front of the same memory
				payload = s.buf
			}
			s.message(payload, datagrams.Copy{D: i, Segs: 1, To: int32(k)})
		}
	}
}

// message gathers one copy.
func (s *portableSender) message(payload []byte, who datagrams.Copy) {
	e := &s.Window[who.D].To[who.To]
	if e.Is4() != s.u.is4 {
		s.Lose(who, frame.Unreachable)
		return
	}
	s.msgs[s.n].Buffers[0], s.who[s.n] = payload, who
	if s.u.batch {
		a := &s.addrs[s.n]
		copy(a.IP, e.IP[:])
		a.Port, a.Zone = int(e.Port), ""
		if e.Scope != 0 {
			a.Zone = strconv.Itoa(int(e.Scope))
		}
	} else {
		s.to[s.n] = e.AddrPort()
	}
	s.n++
}

// flush sends the gathered messages and clears them.
func (s *portableSender) flush(t *portableSocket) {
	if s.n > 0 {
		t.mu.Lock()
		t.mark(s.marks)
		for off, waits := 0, 0; off < s.n; {
			if (off == 0 || waits > 0) && !s.u.batch {
				_ = t.SetWriteDeadline(time.Now().Add(patience))
			}
			n, err := s.call(t, off)
			s.Sum.Calls++
			s.Sent(s.who[off : off+n])
			off += n
			if errors.Is(err, os.ErrDeadlineExceeded) && waits < tries {
				waits++
				continue
			}
			if waits = 0; err != nil {
				off += s.refused(off, why(err))
			}
		}
		t.mu.Unlock()
	}
	s.n, s.buf = 0, s.buf[:0]
}

// call sends messages from off on, as many as one call takes.
func (s *portableSender) call(t *portableSocket, off int) (n int, err error) {
	if s.u.batch {
		n, err = t.opts.WriteBatch(s.msgs[off:s.n], dontWait)
		return max(n, 0), err
	}
	if _, err := s.u.write(t.UDPConn, s.msgs[off].Buffers[0], s.to[off]); err != nil {
		return 0, err
	}
	return 1, nil
}

// refused counts the message at off as lost, or if there is no room all that follow. It returns how many.
func (s *portableSender) refused(off int, why frame.Reason) int {
	who := s.who[off:s.n]
	switch why {
	case frame.PortDown:
		s.down = true
	case frame.PortFull:
	default:
		who = who[:1]
	}
	for _, c := range who {
		s.Lose(c, why)
	}
	return len(who)
}

// why returns the drop reason for an error of a socket.
func why(err error) frame.Reason {
	var e syscall.Errno
	switch {
	case errors.Is(err, net.ErrClosed):
		return frame.PortDown
	case errors.Is(err, os.ErrDeadlineExceeded):
		return frame.PortFull
	case errors.As(err, &e):
		for _, x := range portableReasons {
			if e == x.errno {
				return x.why
			}
		}
	}
	return frame.SendFailed
}

// A portableReason maps an error of the system to a drop reason.
type portableReason struct {
	errno syscall.Errno
	why   frame.Reason
}
