package port

import (
	"syscall"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// longestPacket is the longest packet that the kernel sends: an IP packet of less than 64 KiB, an Ethernet
// header and VLAN tags (Linux 6.18). The tun driver silently cuts a packet that does not fit.
const longestPacket = 1<<16 - 1 + ethLen + 2*vlanLen

// enough is the length of a packet after which a batch ends: the superframe is sent while it is still in
// the cache, and another processor can read the next one. Four TCP flows gain a fifteenth.
const enough = 16 << 10

// An owner is the port that has a descriptor.
type owner interface {
	refresh()             // see Device.refresh
	over(err error) error // the error of Read and Write for an error of the descriptor
}

// deviceReader reads one system call a packet until the kernel has no more or the
// batch is full: from a queue of the tun driver, or a packet socket.
type deviceReader struct {
	of   owner
	conn syscall.RawConn
	poll func(fd uintptr) bool // receive, as a closure made once
	busy sys.BusyPoll

	// next reads a packet into f, the last frame of b, which has room for the longest packet, and gives
	// the rest of the room back to b.
	next func(fd uintptr, b *frame.Batch, f *frame.Frame) (n int, errno syscall.Errno)

	batch *frame.Batch  // of the Read under way
	errno syscall.Errno // it ended with
}

func (r *deviceReader) open(of owner, conn syscall.RawConn, next func(uintptr, *frame.Batch, *frame.Frame) (int, syscall.Errno)) {
	r.of, r.conn, r.next, r.poll = of, conn, next, r.receive
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
	return r.of.over(err)
}

// receive fills the batch. It returns false to wait for the descriptor.
func (r *deviceReader) receive(fd uintptr) bool {
	b := r.batch
	r.of.refresh()
	for n := 0; n < enough; {
		f := b.New(longestPacket)
		if f == nil {
			return true
		}
		var errno syscall.Errno
		if n, errno = r.next(fd, b, f); errno != 0 {
			b.Keep(len(b.Frames) - 1)
			if len(b.Frames) > 0 {
				return true // a lasting error comes again
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

// next reads the virtio header into the headroom.
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
