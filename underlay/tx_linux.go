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

const txCtl = 4 * sys.CmsgInt

// A sender holds one worker's scratch memory for sending through the shared transmit sockets.
//
// It sorts a window of datagrams by source port (without ports by IP protocol; a run by that of its first packet),
// keeps their order, and builds one message for each copy, or for each piece of a run. sendmmsg sends the messages of
// one socket, at most datagrams.Chunk at a time. When the next datagram of a port needs another kind of socket, the
// messages before it are sent first.
type sender struct {
	u    *base
	call func(fd uintptr) // transmit, made once
	sock *txSock          // socket that transmit sends through
	errs *errReader

	set  *txSet                     // of the datagrams being sent
	next [datagrams.MaxWindow]uint8 // index of the next datagram on the same port
	used [datagrams.MaxWindow]queue // the ports with datagrams
	at   [datagrams.MaxSlots]uint8  // by port, 1 + its place in used, or 0
	down bool                       // the underlay has been closed

	datagrams.Ledger
	out   datagrams.Outbox
	names [datagrams.Chunk]sys.Sockaddr // of the messages
	ctl   [datagrams.Chunk][txCtl]byte
	label bool // messages have a flow label, as their first control message
	bare  bool // it has been taken off the messages built so far

	single single // scratch memory for refused runs
}

// A queue is the datagrams of a window on one source port.
type queue struct {
	port        uint16
	first, last uint8
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
// A run (Seg > 0) is sent in messages of up to 64 datagrams, which the kernel or the network card cuts. A copy of a
// run is lost if any of its datagrams is lost. The loss reasons are Unreachable for an endpoint of the other address
// family, PortFull for up to 128 messages of a source port whose socket buffer is full, SendFailed for a Set that
// Sockets has not returned or whose sockets cannot be opened, and BadHeader for a payload that an IP underlay cannot
// send because it is not an IP packet.
func (s *sender) Send(ds []frame.Datagram) error {
	s.down = false
	s.label = !s.u.is4 && !s.u.noLabels.Load()
	s.Ledger.Send(ds, s.window)
	if s.down {
		return net.ErrClosed
	}
	return nil
}

// window sends the datagrams in s.Window, set by set.
func (s *sender) window() {
	var sets uint32 // bit k: set k has datagrams
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
			ports = &[]uint16{0} // no ports: socket returns the error
		}
	}
	n := 0
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
		if s.at[k] == 0 {
			s.used[n] = queue{port: uint16(k), first: uint8(i), last: uint8(i)}
			n++
			s.at[k] = uint8(n)
			continue
		}
		q := &s.used[s.at[k]-1]
		s.next[q.last] = uint8(i)
		q.last = uint8(i)
	}
	for _, q := range s.used[:n] {
		s.at[q.port] = 0
		s.sendPort(int(q.port), q.first, q.last)
	}
}

// port picks one of n ports for a datagram, -1 if it cannot be sent.
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
			// Sockets for runs cannot be opened; other kinds may be open.
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

// kind returns the kind of socket for a datagram, or for a run with per datagrams in a message.
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
	return x.socks[port%len(x.socks)], 0
}

// add builds a message to each endpoint of datagram i. The messages share its memory and its control messages.
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

// room sends the messages built so far if there is no room for another one of that many pieces.
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
		name.Port = 0 // rawv6_sendmsg takes any other port for a protocol
	}
	m := s.out.Put(iov, who)
	m.Namelen = n
	m.Control = unsafe.SliceData(ctl)
	m.SetControllen(len(ctl))
}

// control returns the control messages of a datagram, or of a run in pieces of seg bytes, in the scratch memory of the
// next message. There are none if the socket's defaults apply.
func (s *sender) control(d *frame.Datagram, seg uint16) []byte {
	ttl := d.TTL != 0 && (int(d.TTL) != s.u.cfg.DefaultTTL || d.To[0].IsMulticast())
	if !ttl && d.TOS == 0 && seg == 0 && !s.label {
		return nil
	}
	b, n := &s.ctl[s.out.N], 0
	level, typeTOS, typeTTL := unix.IPPROTO_IPV6, unix.IPV6_TCLASS, unix.IPV6_HOPLIMIT
	if s.u.is4 {
		level, typeTOS, typeTTL = unix.IPPROTO_IP, unix.IP_TOS, unix.IP_TTL
	}
	if s.label { // the first: see unlabel
		n += sys.PutCmsgBE32(b[n:], level, sys.IPV6FlowInfo, datagrams.Label(d.Flow))
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
		// Control, not Write: it also holds the descriptor open, and senders do not wait for each other.
		err := t.raw.Control(s.call)
		if err != nil {
			s.down = true
			for _, c := range s.out.Who[:s.out.N] {
				s.Lose(c, frame.PortDown)
			}
		}
	}
	s.out.Clear()
	s.bare = false
}
