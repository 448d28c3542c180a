package underlay

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// rxControl is room for the control messages of one message: address, TOS, TTL,
// segment size, and one or two that a Control func may have asked for.
const rxControl = 192

// A reader receives from one socket. One message is one datagram or, with UDP_GRO, a
// run of datagrams that the sender's or the receiver's kernel left in one piece; or, of raw
// sockets, one IP packet. Its frames lie where it was received.
type reader struct {
	inbox
	u    *base
	sock atomic.Pointer[sock]  // SetLocal puts another in its place; nil for the one of many sockets: see groupReader
	wait syscall.RawConn       // what it waits for where it has no socket of its own
	kind frame.Kind            // of what it receives, when that is IP packets
	call func(fd uintptr) bool // recv, made once

	off   int // bytes of message at that have been handed over
	names [rxMessages]sys.Sockaddr
	iov   [rxMessages]unix.Iovec
	ctl   [rxMessages][rxControl]byte
	info  sys.RxInfo
}

func newReader(u *base, s *sock) *reader {
	r := &reader{u: u, inbox: inbox{want: minWant, busy: sys.BusyPoll{Max: u.cfg.BusyPoll}}}
	r.sock.Store(s)
	r.call = r.recv
	for i := range r.msgs {
		h := &r.msgs[i].Hdr
		h.Name = (*byte)(unsafe.Pointer(&r.names[i]))
		h.Iov, r.into[i] = &r.iov[i], &r.iov[i]
		h.SetIovlen(1)
		h.Control = &r.ctl[i][0]
	}
	return r
}

// Read implements [frame.Reader]. Runs are split; the frames of one are not spread over
// two batches unless there are more than [frame.MaxBatch].
func (r *reader) Read(b *frame.Batch) error {
	b.Reset()
	r.pool = b.Pool()
	defer func() { r.pool = nil }()
	if r.at < r.n {
		if err := r.u.stopped(); err != nil {
			return r.stop(b, err)
		}
		r.deliver(b)
		return nil
	}
	for failed := 0; ; failed++ {
		r.n, r.at, r.errno = 0, 0, 0
		s, wait := r.sock.Load(), r.wait
		if s != nil {
			wait = s.raw
		}
		if err := wait.Read(r.call); err != nil {
			r.release()
			b.Release()
			if r.sock.Load() != s {
				continue // it was closed under us by SetLocal
			}
			if stopped := r.u.stopped(); stopped != nil { // what a file that is closed returns is no sentinel
				return stopped
			}
			return readError(err)
		}
		if r.n > 0 {
			r.adapt()
			r.deliver(b)
			return nil
		}
		r.release()
		b.Release()
		if fatal(r.errno) {
			return readError(os.NewSyscallError("recvmmsg", r.errno))
		}
		r.rx.Errors.Add(1)
		if err := backOff(failed, r.u.done); err != nil {
			return err
		}
	}
}

// recv is called when the socket may be readable; false asks to be called again
// when it is. It holds no packet memory while it waits.
func (r *reader) recv(fd uintptr) bool {
	r.prepare()
	return r.take(fd)
}

// prepare makes the messages ready for the kernel.
func (r *reader) prepare() {
	r.inbox.prepare(maxMessage)
	for i := range r.want {
		h := &r.msgs[i].Hdr
		h.Namelen = uint32(unsafe.Sizeof(r.names[i]))
		h.SetControllen(rxControl)
	}
}

// maxMessage is the most that can arrive in one message.
const maxMessage = 1<<16 - 1

// deliver makes frames of the messages received, as many as the batch takes.
func (r *reader) deliver(b *frame.Batch) {
	for ; r.at < r.n; r.at, r.off = r.at+1, 0 {
		if !r.split(b) {
			break
		}
	}
	r.rx.Datagrams.Add(uint64(len(b.Frames)))
}

// split makes frames of message r.at, from r.off on. It reports false when some are left
// for the next batch.
func (r *reader) split(b *frame.Batch) bool {
	m := &r.msgs[r.at]
	r.info.Parse(r.ctl[r.at][:min(int(m.Hdr.Controllen), rxControl)])
	if r.u.raw {
		return r.packet(b, m)
	}
	n, seg := int(m.Len), r.info.Segment
	lone := seg <= 0 || seg >= n
	if (!lone || n > r.u.cfg.MaxDatagram) && r.off == 0 && m.Hdr.Flags&unix.MSG_TRUNC == 0 {
		if super := r.u.superframes.Load(); super != nil && (*super)(r.blocks[r.at][roomAt(r.at):][:n]) {
			return r.superframe(b, m, seg)
		}
	}
	if lone {
		seg = n
	} else if left := (n - r.off + seg - 1) / seg; left > frame.MaxBatch-len(b.Frames) && len(b.Frames) > 0 {
		return false
	}
	if r.off == 0 {
		r.arrived(lone, (n+max(seg, 1)-1)/max(seg, 1))
	}
	outer := r.outer(m)
	for {
		end := min(r.off+seg, n)
		f := r.frame(b, r.off, end, end == n)
		if f == nil {
			return false
		}
		b.Outer[len(b.Outer)-1] = outer
		if end-r.off > r.u.cfg.MaxDatagram {
			f.Trim(r.u.cfg.MaxDatagram)
			f.Drop = frame.TooBig
		} else if end == n && m.Hdr.Flags&unix.MSG_TRUNC != 0 {
			f.Drop = frame.TooBig
		}
		if f.Drop != frame.NotDropped {
			r.rx.Truncated.Add(1)
		}
		if r.off = end; end == n {
			return true
		}
	}
}

// superframe makes one frame of message r.at. With seg > 0 the kernel has said how long the
// segments of what is inside are: it tells nobody that its superframes of UDP are in a tunnel.
func (r *reader) superframe(b *frame.Batch, m *sys.Mmsghdr, seg int) bool {
	f := r.frame(b, 0, int(m.Len), true)
	if f == nil {
		return false
	}
	if seg > 0 {
		f.GSO = frame.GSO{Type: frame.GSOUDP, Size: uint16(seg)}
	}
	b.Outer[len(b.Outer)-1] = r.outer(m)
	return true
}

// frame makes a frame of bytes [from, to) of a message. The first has headroom. What is
// in front of any other are the bytes of its neighbour, so it has none, and nobody but the
// last has any room behind.
func (r *reader) frame(b *frame.Batch, from, to int, last bool) *frame.Frame {
	x, start := r.blocks[r.at][:], roomAt(r.at)
	lo, hi := start+from, start+to
	if from == 0 {
		lo -= frame.Headroom
	}
	if last {
		hi = len(x)
	}
	return b.Borrow(x[lo:hi:hi], start+from-lo, start+to-lo)
}

// arrived books a message.
func (r *reader) arrived(lone bool, segs int) {
	if !lone {
		r.rx.Runs.Add(1)
		r.rx.Segments.Add(uint64(segs))
	}
}

// outer returns what the control messages in r.info and the header say.
func (r *reader) outer(m *sys.Mmsghdr) frame.Outer {
	o := frame.Outer{If: r.info.If, TOS: r.info.TOS, TTL: r.info.TTL}
	o.Src, _ = sys.Endpoint(&r.names[r.at], m.Hdr.Namelen)
	if r.info.HasDst {
		o.Dst.IP = r.info.Dst
		o.Dst.Port = r.u.LocalAddr().Port()
		if o.Dst.IsLinkLocal() {
			o.Dst.Scope = r.info.If
		}
	}
	return o
}

// fatal reports whether a socket is broken for good. Everything else passes: errors
// the network reported about what we sent (they come one at a time and are gone
// once they are read), an interface that is down, memory that is short.
func fatal(e unix.Errno) bool {
	switch e {
	case unix.EBADF, unix.ENOTSOCK, unix.EFAULT, unix.EINVAL, unix.ENOSYS, unix.EPERM:
		return true
	}
	return false
}

func (r *reader) addTo(st *datagrams.Counts) {
	r.countDrops()
	st.RxOverflow += r.dropped.total
	r.rx.AddTo(st)
}

// countDrops asks the socket how much it has dropped. u.mu is held.
func (r *reader) countDrops() { r.dropped.ask(r.sock.Load()) }

// A dropCounter extends a socket's 32-bit counter of dropped packets to 64 bits, for
// whoever asks at least once in four billion drops. It is used under base.mu.
type dropCounter struct {
	last  uint32
	total uint64
}

// ask looks at a socket's counter.
func (d *dropCounter) ask(s *sock) {
	_ = s.raw.Control(func(fd uintptr) {
		if v, ok := sys.Drops(fd); ok {
			d.seen(v)
		}
	})
}

func (d *dropCounter) seen(v uint32) {
	d.total += uint64(v - d.last)
	d.last = v
}
