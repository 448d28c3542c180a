package underlay

import (
	"math/bits"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

const txCtl = 3 * sys.CmsgInt

// A sender is one worker's scratch over the shared transmit sockets.
//
// It sorts a window of datagrams by source port, or by protocol where there are no ports
// (a run by that of its first packet), keeping their order, and builds one
// message for each copy, or for each piece of a run. What belongs to one socket goes out
// by sendmmsg, at most datagrams.Chunk messages at a time; when the next datagram of a port needs
// another kind of socket, what came before it goes out first.
type sender struct {
	u    *base
	call func(fd uintptr) // transmit, made once
	sock *txSock          // that transmit is called for
	errs *errReader

	set  *txSet                     // whose datagrams are sent
	next [datagrams.MaxWindow]uint8 // the datagram after this one on the same port
	down bool                       // the underlay was closed under us

	datagrams.Ledger
	out   datagrams.Outbox
	names [datagrams.Chunk]sys.Sockaddr // of the messages
	ctl   [datagrams.Chunk][txCtl]byte

	single single // scratch for runs that were refused
}

func newSender(u *base) *sender {
	s := &sender{u: u, errs: newErrReader(u), out: datagrams.NewOutbox()}
	s.call = s.transmit
	for i := range s.out.Msgs {
		s.out.Msgs[i].Hdr.Name = (*byte)(unsafe.Pointer(&s.names[i]))
	}
	return s
}

// Send implements [frame.Sender]. It returns net.ErrClosed after Close.
//
// A run (Seg > 0) leaves as messages of up to 64 datagrams each, which the kernel or the
// network card cuts. A copy of a run is lost when any of its datagrams is. A datagram to
// an endpoint of the other address family is lost as Unreachable. When a socket's buffer
// is full, up to 128 messages that were next on that source port are lost as PortFull.
// One with a Set that Sockets has not given, or whose sockets cannot be opened, is lost
// as SendFailed. What an IP underlay cannot send, as it is no IP packet, is lost as BadHeader.
func (s *sender) Send(ds []frame.Datagram) error {
	s.down = false
	s.Ledger.Send(ds, s.window)
	if s.down {
		return net.ErrClosed
	}
	return nil
}

// window sends the datagrams in s.Window, set by set.
func (s *sender) window() {
	var sets uint32 // bit k: something for set k
	for i := range s.Window {
		d := &s.Window[i]
		d.Lost, d.Drop = 0, frame.NotDropped
		if s.u.sets.Get(d.Set) == nil {
			s.LoseAll(uint8(i), frame.SendFailed)
			continue
		}
		sets |= 1 << d.Set
	}
	for ; sets != 0; sets &= sets - 1 {
		k := uint8(bits.TrailingZeros32(sets))
		s.set = s.u.sets.Get(k)
		s.sendSet(k)
	}
}

// sendSet sends the datagrams of one set in s.Window, source port by source port.
func (s *sender) sendSet(set uint8) {
	ports := s.set.ports.ports.Load()
	if ports == nil {
		s.u.openTx(s.set.ports, s.set.lone)
		if ports = s.set.ports.ports.Load(); ports == nil {
			ports = &[]uint16{0} // none: socket will tell why
		}
	}
	var first, last [datagrams.MaxSlots]uint8
	var used uint32 // bit k: something for port k
	for i := range s.Window {
		d := &s.Window[i]
		if d.Set != set {
			continue
		}
		k := s.port(d, len(*ports))
		if k < 0 {
			s.LoseAll(uint8(i), frame.BadHeader)
			continue
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
		s.sendPort(k, first[k], last[k])
	}
}

// port picks one of n ports for a datagram, -1 for what cannot be sent.
func (s *sender) port(d *frame.Datagram, n int) int {
	if s.u.raw {
		return datagrams.Protocol(d.Parts)
	}
	return datagrams.Index(d.Flow, n)
}

// sendPort sends the datagrams of one source port, from first on, in order.
func (s *sender) sendPort(port int, first, last uint8) {
	var t *txSock
	for i := first; ; i = s.next[i] {
		per := s.perMessage(&s.Window[i])
		to, why := s.socket(port, s.kind(&s.Window[i], per))
		if to == nil && per > 1 && !s.down {
			// Those for runs cannot be opened; others may be there.
			per = 1
			to, why = s.socket(port, s.kind(&s.Window[i], per))
		}
		if to != t && t != nil {
			s.flush(t)
		}
		t = to
		switch {
		case t == nil:
			s.LoseAll(i, why)
		case s.Window[i].Seg == 0:
			s.add(t, i)
		default:
			s.addRun(t, i, per)
		}
		if i == last {
			break
		}
	}
	if t != nil {
		s.flush(t)
	}
}

// kind returns the kind of socket for a datagram, or for a run with per datagrams in a
// message.
func (s *sender) kind(d *frame.Datagram, per int) kind {
	k := s.set.lone
	if per > 1 {
		k = s.set.run
	}
	if !d.DF {
		k |= s.set.plain
	}
	return k
}

// socket returns a transmit socket, or why there is none.
func (s *sender) socket(port int, k kind) (*txSock, frame.Reason) {
	x := s.set.ports.kinds[k].Load()
	if x == nil || x.err != nil && time.Now().After(x.again) {
		x = s.u.openTx(s.set.ports, k)
	}
	switch {
	case x.err != nil:
		return nil, frame.SendFailed
	case x.socks == nil: // closed
		s.down = true
		return nil, frame.PortDown
	}
	return x.socks[port%len(x.socks)], 0 // another address may have fewer ports
}

// add builds a message to each endpoint of datagram i. They share its pieces of memory
// and its control messages.
func (s *sender) add(t *txSock, i uint8) {
	d := &s.Window[i]
	if len(d.Parts) > datagrams.MaxIov {
		s.LoseAll(i, frame.SendFailed)
		return
	}
	for k := 0; k < len(d.To); {
		s.room(t, len(d.Parts))
		c := datagrams.At(d.Parts, 0)
		iov, _ := s.out.Take(len(s.out.IOV), &c, datagrams.Size(d), 0)
		ctl := s.control(d, 0)
		for ; k < len(d.To) && s.out.N < datagrams.Chunk; k++ {
			s.message(i, k, iov, ctl, datagrams.Copy{D: i, Segs: 1, To: int32(k)})
		}
	}
}

// room sends what was built if there is no room for a message of that many pieces.
func (s *sender) room(t *txSock, pieces int) {
	if !s.out.Fits(pieces) {
		s.flush(t)
	}
}

// message builds a message to endpoint k of datagram i.
func (s *sender) message(i uint8, k int, iov []unix.Iovec, ctl []byte, who datagrams.Copy) {
	name := &s.names[s.out.N]
	n := sys.PutSockaddr(name, &s.Window[i].To[k], s.u.is4)
	if n == 0 {
		s.Lose(who, frame.Unreachable)
		return
	}
	if s.u.raw {
		name.Port = 0 // another than 0 would be the protocol (rawv6_sendmsg)
	}
	m := s.out.Put(iov, who)
	m.Namelen = n
	m.Control = unsafe.SliceData(ctl)
	m.SetControllen(len(ctl))
}

// control returns the control messages of a datagram, or of a run in pieces of seg
// bytes: none when the sockets' defaults are right. It uses the scratch of the next
// message.
func (s *sender) control(d *frame.Datagram, seg uint16) []byte {
	ttl := d.TTL != 0 && (int(d.TTL) != s.u.cfg.DefaultTTL || d.To[0].IsMulticast())
	if !ttl && d.TOS == 0 && seg == 0 {
		return nil
	}
	b, n := &s.ctl[s.out.N], 0
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
	if seg != 0 { // the last: see single
		n += sys.PutCmsgU16(b[n:], unix.SOL_UDP, unix.UDP_SEGMENT, seg)
	}
	return b[:n]
}

// flush sends the messages built so far and forgets them.
func (s *sender) flush(t *txSock) {
	if s.out.N > 0 {
		s.sock = t
		// Control, not Write: it holds the descriptor open as well, and does not
		// make the senders wait for each other.
		err := t.raw.Control(s.call)
		if err != nil {
			s.down = true
			for _, c := range s.out.Who[:s.out.N] {
				s.Lose(c, frame.PortDown)
			}
		}
	}
	s.out.Clear()
}
