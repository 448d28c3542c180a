package underlay

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// rxControl is room for the control messages of one message: address, TOS, TTL, segment size, and one or two that a
// Control function may have requested.
const rxControl = 192

// A reader receives from one socket. A message is one datagram, with UDP_GRO a run of datagrams that a kernel has not
// cut, or with raw sockets an IP packet. Frames stay in the memory they were received in.
type reader struct {
	datagrams.Inbox
	u    *base
	sock *sock                 // nil in a groupReader
	wait syscall.RawConn       // to wait for
	kind frame.Kind            // of received IP packets
	call func(fd uintptr) bool // recv, allocated once

	names [datagrams.MaxMessages]sys.Sockaddr
	iov   [datagrams.MaxMessages]unix.Iovec
	ctl   [datagrams.MaxMessages][rxControl]byte
	info  sys.RxInfo

	dropped datagrams.Drops // under base.mu
}

func newReader(u *base, s *sock) *reader {
	r := &reader{u: u, sock: s, Inbox: datagrams.Inbox{Want: datagrams.MinWant, Poll: sys.BusyPoll{Max: u.cfg.BusyPoll}}}
	if s != nil {
		r.wait = s.raw
	}
	r.call = r.recv
	for i := range r.Msgs {
		h := &r.Msgs[i].Hdr
		h.Name = (*byte)(unsafe.Pointer(&r.names[i]))
		h.Iov, r.Into[i] = &r.iov[i], &r.iov[i]
		h.SetIovlen(1)
		h.Control = &r.ctl[i][0]
	}
	return r
}

// Read implements [frame.Reader]. It splits runs. The frames of a run are in one batch unless there are more than
// [frame.MaxBatch].
func (r *reader) Read(b *frame.Batch) error {
	b.Reset()
	r.Pool = b.Pool()
	defer func() { r.Pool = nil }()
	if r.At < r.N {
		if err := r.u.stopped(); err != nil {
			return r.Stop(b, err)
		}
		r.deliver(b)
		return nil
	}
	for failed := 0; ; failed++ {
		r.N, r.At, r.Errno = 0, 0, 0
		if err := r.wait.Read(r.call); err != nil {
			r.Release()
			b.Release()
			if stopped := r.u.stopped(); stopped != nil { // a closed file returns another error than net.ErrClosed
				return stopped
			}
			return readError(err)
		}
		if r.N > 0 {
			r.Adapt()
			r.deliver(b)
			return nil
		}
		r.Release()
		b.Release()
		if fatal(r.Errno) {
			return readError(os.NewSyscallError("recvmmsg", r.Errno))
		}
		r.Rx.Errors.Add(1)
		if err := datagrams.BackOff(failed, r.u.done); err != nil {
			return err
		}
	}
}

// recv is called when the socket may be readable; it returns false to be called again. It holds no packet memory while it
// waits.
func (r *reader) recv(fd uintptr) bool {
	r.prepare()
	return r.Take(fd)
}

// prepare sets up the messages for the kernel.
func (r *reader) prepare() {
	r.Prepare(maxMessage)
	for i := range r.Want {
		h := &r.Msgs[i].Hdr
		h.Namelen = uint32(unsafe.Sizeof(r.names[i]))
		h.SetControllen(rxControl)
	}
}

// maxMessage is the maximum length of a message.
const maxMessage = 1<<16 - 1

// deliver makes frames of the received messages, as many as the batch takes.
func (r *reader) deliver(b *frame.Batch) {
	for ; r.At < r.N; r.At++ {
		if !r.split(b) {
			break
		}
	}
	r.Rx.Datagrams.Add(uint64(len(b.Frames)))
}

// split makes frames of message r.At, or of the rest of it. It returns false if the batch is full and frames are left.
func (r *reader) split(b *frame.Batch) bool {
	m := &r.Msgs[r.At]
	r.info.Parse(r.ctl[r.At][:min(int(m.Hdr.Controllen), rxControl)])
	if r.u.raw {
		return r.packet(b, m)
	}
	n, seg := int(m.Len), r.info.Segment
	lone := seg <= 0 || seg >= n
	if (!lone || n > r.u.cfg.MaxDatagram) && !r.Begun() && m.Hdr.Flags&unix.MSG_TRUNC == 0 {
		if super := r.u.superframes.Load(); super != nil && (*super)(r.Blocks[r.At][datagrams.RoomAt(r.At):][:n]) {
			return r.superframe(b, m, seg)
		}
	}
	if lone {
		seg = n
	}
	before, most := len(b.Frames), r.u.cfg.MaxDatagram
	done := r.Split(b, 0, n, seg, r.outer(m))
	if cut := m.Hdr.Flags&unix.MSG_TRUNC != 0; cut || seg > most {
		for i := range b.Frames[before:] {
			f := &b.Frames[before+i]
			if f.Len() > most {
				f.Trim(most)
			} else if !cut || !done || before+i < len(b.Frames)-1 {
				continue
			}
			f.Drop = frame.TooBig
			r.Rx.Truncated.Add(1)
		}
	}
	return done
}

// superframe makes one frame of message r.At. With seg > 0 the kernel has told the segment length of the inner packet, but
// not that its UDP superframe is in a tunnel.
func (r *reader) superframe(b *frame.Batch, m *sys.Mmsghdr, seg int) bool {
	f := r.whole(b, m)
	if f != nil && seg > 0 {
		f.GSO = frame.GSO{Type: frame.GSOUDP, Size: uint16(seg)}
	}
	return f != nil
}

// whole makes one frame of message r.At, nil if the batch is full.
func (r *reader) whole(b *frame.Batch, m *sys.Mmsghdr) *frame.Frame {
	n := int(m.Len)
	if !r.Split(b, 0, n, n, r.outer(m)) {
		return nil
	}
	return &b.Frames[len(b.Frames)-1]
}

// outer returns the contents of the control messages in r.info and of the header.
func (r *reader) outer(m *sys.Mmsghdr) frame.Outer {
	o := frame.Outer{If: r.info.If, TOS: r.info.TOS, TTL: r.info.TTL}
	o.Src, _ = sys.Endpoint(&r.names[r.At], m.Hdr.Namelen)
	if r.info.HasDst {
		o.Dst.IP = r.info.Dst
		o.Dst.Port = r.u.LocalAddr().Port()
		if o.Dst.IsLinkLocal() {
			o.Dst.Scope = r.info.If
		}
	}
	return o
}

// fatal reports whether a socket is broken for good. All other errors pass: ICMP errors about sent datagrams (reading
// one clears it), an interface that is down, lack of memory.
func fatal(e unix.Errno) bool {
	switch e {
	case unix.EBADF, unix.ENOTSOCK, unix.EFAULT, unix.EINVAL, unix.ENOSYS, unix.EPERM:
		return true
	}
	return false
}

func (r *reader) addTo(st *datagrams.Counts) {
	r.countDrops()
	st.RxOverflow += r.dropped.Total
	r.Rx.AddTo(st)
}

// countDrops adds what the socket has dropped. u.mu is held.
func (r *reader) countDrops() { r.sock.drops(&r.dropped) }

// drops reads a socket's counter.
func (s *sock) drops(d *datagrams.Drops) {
	_ = s.raw.Control(func(fd uintptr) {
		if v, ok := sys.Drops(fd); ok {
			d.Seen(v)
		}
	})
}
