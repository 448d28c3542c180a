package underlay

import (
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// rxControl is room for the control messages of one datagram: address, TOS, TTL,
// drop counter, and one or two that a Control func may have asked for.
const rxControl = 192

// minWant is the fewest datagrams a reader makes room for.
const minWant = 8

// A udpReader receives from one socket.
type udpReader struct {
	u    *UDP
	sock *sock
	call func(fd uintptr) bool // recv, made once

	// Of the call in progress.
	b     *frame.Batch
	n     int
	errno unix.Errno

	want  int // datagrams to make room for: grows while batches are full
	msgs  [frame.MaxBatch]sys.Mmsghdr
	names [frame.MaxBatch]sys.Sockaddr
	iov   [frame.MaxBatch]unix.Iovec
	ctl   [frame.MaxBatch][rxControl]byte
	info  sys.RxInfo

	datagrams, truncated, errors atomic.Uint64
	dropped                      dropCounter
}

func newUDPReader(u *UDP, s *sock) *udpReader {
	r := &udpReader{u: u, sock: s, want: minWant}
	r.call = r.recv
	for i := range r.msgs {
		h := &r.msgs[i].Hdr
		h.Name = (*byte)(unsafe.Pointer(&r.names[i]))
		h.Iov = &r.iov[i]
		h.SetIovlen(1)
		h.Control = &r.ctl[i][0]
	}
	return r
}

// Read implements [frame.Reader].
func (r *udpReader) Read(b *frame.Batch) error {
	r.b = b
	defer func() { r.b = nil }()
	for failed := 0; ; failed++ {
		b.Reset()
		r.n, r.errno = 0, 0
		if err := r.sock.raw.Read(r.call); err != nil {
			b.Release()
			return readError(err)
		}
		if r.n > 0 {
			r.deliver()
			return nil
		}
		if fatal(r.errno) {
			b.Release()
			return readError(os.NewSyscallError("recvmmsg", r.errno))
		}
		r.errors.Add(1)
		if err := r.backOff(b, failed); err != nil {
			return err
		}
	}
}

// recv is called when the socket may be readable; false asks to be called again
// when it is. The batch has no memory while it waits.
func (r *udpReader) recv(fd uintptr) bool {
	k := r.prepare()
	var errno unix.Errno
	for {
		r.n, errno = sys.Recvmmsg(fd, r.msgs[:k], unix.MSG_DONTWAIT)
		if errno != unix.EINTR {
			break
		}
	}
	if errno == unix.EAGAIN {
		r.b.Release()
		clear(r.iov[:k]) // or they would keep the arena from the garbage collector
		r.want = minWant
		return false
	}
	r.errno = errno
	return true
}

// prepare makes room in the batch and points the message headers to it.
func (r *udpReader) prepare() int {
	r.b.Reset()
	k := 0
	for ; k < r.want; k++ {
		f := r.b.New(r.u.cfg.MaxDatagram)
		if f == nil {
			break
		}
		r.iov[k].Base = unsafe.SliceData(f.Bytes())
		r.iov[k].SetLen(r.u.cfg.MaxDatagram)
		h := &r.msgs[k].Hdr
		h.Namelen = uint32(unsafe.Sizeof(r.names[k]))
		h.SetControllen(rxControl)
		h.Flags = 0
	}
	return k
}

// deliver turns the messages received into frames.
func (r *udpReader) deliver() {
	b, made := r.b, len(r.b.Frames)
	b.Keep(r.n)
	for i := range b.Frames {
		f, m := &b.Frames[i], &r.msgs[i]
		f.Trim(int(m.Len))
		if m.Hdr.Flags&unix.MSG_TRUNC != 0 {
			f.Drop = frame.TooBig
			r.truncated.Add(1)
		}
		r.info.Parse(r.ctl[i][:min(int(m.Hdr.Controllen), rxControl)])
		o := frame.Outer{If: r.info.If, TOS: r.info.TOS, TTL: r.info.TTL}
		o.Src, _ = sys.Endpoint(&r.names[i], m.Hdr.Namelen)
		if r.info.HasDst {
			o.Dst.IP = r.info.Dst
			o.Dst.Port = r.u.local.Port()
			if linkLocal(&o.Dst) {
				o.Dst.Scope = r.info.If
			}
		}
		b.Outer[i] = o
		if r.info.HasDrops {
			r.dropped.seen(r.info.Drops)
		}
	}
	r.datagrams.Add(uint64(r.n))
	switch {
	case r.n == made:
		r.want = min(2*r.want, frame.MaxBatch)
	case r.n < made/4:
		r.want = max(r.want/2, minWant)
	}
}

// linkLocal reports whether e is in fe80::/10, where an address means something
// only together with an interface.
func linkLocal(e *frame.Endpoint) bool { return e.IP[0] == 0xfe && e.IP[1]&0xc0 == 0x80 }

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

// backOff waits after many errors in a row, 1 ms at first and 100 ms at most, so
// that an error that stays does not keep a processor busy. It notices Close.
func (r *udpReader) backOff(b *frame.Batch, failed int) error {
	const free = 8
	if failed < free {
		return nil
	}
	b.Release()
	t := time.NewTimer(min(time.Millisecond<<min(failed-free, 7), 100*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.u.done:
		return net.ErrClosed
	}
}

func (r *udpReader) addTo(st *Stats) {
	_ = r.sock.raw.Control(func(fd uintptr) {
		if v, ok := sys.Drops(fd); ok {
			r.dropped.seen(v)
		}
	})
	st.RxDatagrams += r.datagrams.Load()
	st.RxTruncated += r.truncated.Load()
	st.RxErrors += r.errors.Load()
	st.RxOverflow += r.dropped.total()
}

// A dropCounter extends a socket's 32-bit counter of dropped packets to 64 bits. It
// is told values by the reader, as packets bring them, and by Stats.
type dropCounter struct {
	last  atomic.Uint32
	mu    sync.Mutex
	count uint64
}

// seen takes a value of the kernel's counter. One that is older than the last is
// ignored: a packet was stamped when it was queued, which may be long ago.
func (d *dropCounter) seen(v uint32) {
	if d.last.Load() == v {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if delta := int32(v - d.last.Load()); delta > 0 {
		d.count += uint64(delta)
		d.last.Store(v)
	}
}

func (d *dropCounter) total() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}
