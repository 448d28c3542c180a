package port

import (
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// longestPacket is room for whatever the kernel sends into a device: an IP packet is shorter
// than 64 KiB, and an Ethernet header and VLAN tags may come with it (Linux 6.18). The tun
// driver cuts a packet that does not fit and does not say so.
const longestPacket = 1<<16 - 1 + ethLen + 2*vlanLen

// enough is how long a packet is that is handed over before more are read: a superframe is on
// its way while the next is read, by another processor if there is one, and what is sent
// is still in the cache. Four TCP flows gain a fifteenth.
const enough = 16 << 10

// A source is where the kernel hands packets over, one a system call: a queue of the tun
// driver, or a packet socket.
type source interface {
	// next reads a packet into f, the last frame of b, which has room for the longest; what
	// is not needed of that is given back to b.
	next(fd uintptr, b *frame.Batch, f *frame.Frame) (n int, errno syscall.Errno)

	refresh()              // see Device.refresh
	ended(err error) error // what Read returns when it ends with err
}

// deviceReader reads one system call a packet until the kernel has no more or the
// batch is full.
type deviceReader struct {
	from source
	conn syscall.RawConn
	poll func(fd uintptr) bool // receive, as a closure made once
	busy sys.BusyPoll

	batch *frame.Batch  // of the Read under way
	errno syscall.Errno // it ended with
}

// open makes r the reader of a source.
func (r *deviceReader) open(from source, conn syscall.RawConn) {
	r.from, r.conn, r.poll = from, conn, r.receive
}

func (r *deviceReader) Read(b *frame.Batch) error {
	b.Reset()
	r.batch, r.errno = b, 0
	err := r.conn.Read(r.poll)
	r.batch = nil
	if err == nil && r.errno != 0 {
		err = r.errno
	}
	if err == nil {
		return nil
	}
	b.Release()
	return r.from.ended(err)
}

// receive fills the batch. It returns false to wait for the descriptor.
func (r *deviceReader) receive(fd uintptr) bool {
	b := r.batch
	r.from.refresh()
	for n := 0; n < enough; {
		f := b.New(longestPacket)
		if f == nil {
			return true
		}
		var errno syscall.Errno
		if n, errno = r.from.next(fd, b, f); errno != 0 {
			b.Keep(len(b.Frames) - 1)
			if len(b.Frames) > 0 {
				return true // an error that lasts comes again
			}
			if errno == syscall.EAGAIN {
				if r.busy.Again() {
					b.Reset()
					continue
				}
				b.Release()
				return false
			}
			r.errno = errno
			return true
		}
		r.busy.Found()
	}
	return true
}

func (q *queue) refresh() { q.d.refresh() }

// next has the virtio header put into the headroom.
func (q *queue) next(fd uintptr, b *frame.Batch, f *frame.Frame) (n int, errno syscall.Errno) {
	header := q.d.header
	if n, errno = sys.ReadFD(fd, f.Push(header)); errno != 0 {
		return 0, errno
	}
	head := f.Bytes()[:header]
	f.Pull(header)
	b.Shrink(max(n-header, 0))
	if q.d.tun {
		ipKind(f)
	}
	if header > 0 && f.Drop == frame.NotDropped {
		f.Drop = (*gso.Virtio)(head).Apply(f, f.Headroom())
	}
	return n, 0
}

func (q *queue) ended(err error) error {
	switch errno := syscall.Errno(0); {
	case errors.As(err, &errno):
		return q.d.over(errno)
	case q.d.closed.Load():
		return net.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return frame.ErrPaused
	}
	// The poller saw EPOLLERR, which tun reports when the device was deleted under
	// us; read(2) then says EBADFD, "file descriptor in bad state" (Linux 6.18).
	return q.d.over(sys.EBADFD)
}

// ipKind sets the kind of a frame from a TUN by the version of its header.
func ipKind(f *frame.Frame) {
	f.Kind = frame.IPv4
	switch b := f.Bytes(); {
	case len(b) == 0:
		f.Drop = frame.Short
	case b[0]>>4 == 6:
		f.Kind = frame.IPv6
	case b[0]>>4 != 4:
		f.Drop = frame.BadKind
	}
}
