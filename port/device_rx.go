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

// longestPacket is room for whatever the kernel sends into a device: an skb is
// shorter than 64 KiB, and a VLAN tag may come with it (Linux 6.18). The driver cuts
// a packet that does not fit and does not say so.
const longestPacket = 1<<16 - 1 + vlanLen

// enough is how long a packet is that is handed over before more are read: a superframe is on
// its way while the next is read, by another processor if there is one, and what is sent
// is still in the cache. Four TCP flows gain a fifteenth.
const enough = 16 << 10

// deviceReader reads one system call a packet until the kernel has no more or the
// batch is full.
type deviceReader struct {
	d    *Device
	q    *queue
	poll func(fd uintptr) bool // receive, as a closure made once
	busy sys.BusyPoll

	batch *frame.Batch  // of the Read under way
	errno syscall.Errno // it ended with
}

func (r *deviceReader) Read(b *frame.Batch) error {
	b.Reset()
	r.batch, r.errno = b, 0
	err := r.q.Conn.Read(r.poll)
	r.batch = nil
	if err == nil && r.errno == 0 {
		return nil
	}
	b.Release()
	switch {
	case err == nil:
		return r.d.over(r.errno)
	case r.d.closed.Load():
		return net.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return frame.ErrPaused
	}
	// The poller saw EPOLLERR, which tun reports when the device was deleted under
	// us; read(2) then says EBADFD, "file descriptor in bad state" (Linux 6.18).
	return r.d.over(sys.EBADFD)
}

// receive fills the batch. It returns false to wait for the descriptor.
func (r *deviceReader) receive(fd uintptr) bool {
	b := r.batch
	r.d.refresh()
	for n := 0; n < enough; {
		f := b.New(longestPacket)
		if f == nil {
			return true
		}
		// The virtio header goes into the headroom.
		var errno syscall.Errno
		n, errno = sys.ReadFD(fd, f.Push(r.d.header))
		if errno != 0 {
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
		head := virtioHeader(f.Bytes()[:r.d.header])
		f.Pull(r.d.header)
		b.Shrink(max(n-r.d.header, 0))
		if r.d.tun {
			ipKind(f)
		}
		if len(head) > 0 && f.Drop == frame.NotDropped {
			f.Drop = head.apply(f)
		}
	}
	return true
}

// apply makes f what its header says it is: a superframe, or a frame whose checksum is
// to be completed.
func (h virtioHeader) apply(f *frame.Frame) frame.Reason {
	g, ok := h.gso(f.Headroom())
	if !ok {
		return frame.BadHeader
	}
	if g == (frame.GSO{}) {
		return frame.NotDropped
	}
	f.GSO = g
	r := gso.Check(f)
	if r != frame.NotDropped {
		f.GSO = frame.GSO{}
	}
	return r
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
