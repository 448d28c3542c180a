package port

import (
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// tapReader reads one system call a frame until the kernel has no more or the
// batch is full.
type tapReader struct {
	t    *TAP
	poll func(fd uintptr) bool // receive, as a closure made once

	batch *frame.Batch  // of the Read under way
	errno syscall.Errno // it ended with
}

func (r *tapReader) Read(b *frame.Batch) error {
	b.Reset()
	r.batch, r.errno = b, 0
	err := r.t.tun.Conn.Read(r.poll)
	r.batch = nil
	if err == nil && r.errno == 0 {
		return nil
	}
	b.Release()
	switch {
	case err == nil:
		return r.t.over(r.errno)
	case r.t.closed.Load():
		return net.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return frame.ErrPaused
	}
	// The poller saw EPOLLERR, which tun reports when the device was deleted under
	// us; read(2) then says EBADFD, "file descriptor in bad state" (Linux 6.18).
	return r.t.over(sys.EBADFD)
}

// receive fills the batch. It returns false to wait for the descriptor.
func (r *tapReader) receive(fd uintptr) bool {
	b := r.batch
	r.t.refresh(mtuAge)
	// One byte more than the longest frame with a tag: the driver cuts a packet that
	// does not fit and does not say so.
	size := r.t.MTU(0) + vlanLen + 1
	for {
		f := b.New(size)
		if f == nil {
			return true
		}
		n, errno := sys.ReadFD(fd, f.Bytes())
		if errno != 0 {
			b.Keep(len(b.Frames) - 1)
			if len(b.Frames) > 0 {
				return true // an error that lasts comes again
			}
			if errno == syscall.EAGAIN {
				b.Release()
				return false
			}
			r.errno = errno
			return true
		}
		f.Trim(n)
		if n == size { // the device's MTU was raised a moment ago
			f.Drop = frame.TooBig
			r.t.refresh(mtuDoubt)
		}
	}
}

// tapWriter writes one system call a frame.
type tapWriter struct {
	t    *TAP
	emit func(fd uintptr) // send, as a closure made once
	head tagHead
	pair sys.Pair

	out   []frame.Out   // of the Write under way
	errno syscall.Errno // that broke the port
}

func (w *tapWriter) Write(out []frame.Out) error {
	w.out, w.errno = out, 0
	// Not Conn.Write: that keeps the writers of other workers waiting. Control only
	// keeps the descriptor open, and tun takes concurrent writes.
	err := w.t.tun.Conn.Control(w.emit)
	w.out = nil
	switch {
	case err != nil: // closed
		dropAll(out, frame.PortDown)
		return w.t.over(err)
	case w.errno != 0:
		return w.t.over(w.errno)
	}
	return nil
}

func (w *tapWriter) send(fd uintptr) {
	w.t.refresh(mtuAge)
	for i := range w.out {
		o := &w.out[i]
		if o.Drop = unfit(o); o.Drop != frame.NotDropped {
			continue
		}
		var errno syscall.Errno
		if packet := o.F.Bytes(); o.Tag == 0 {
			_, errno = sys.WriteFD(fd, packet)
		} else {
			_, errno = w.pair.WriteFD(fd, w.head.fill(packet, o.Tag), packet[macLen:])
		}
		switch errno {
		case 0:
		case syscall.EAGAIN, syscall.ENOBUFS, syscall.ENOMEM:
			o.Drop = frame.PortFull
		case syscall.EIO: // the device is down
			o.Drop = frame.PortDown
		case sys.EBADFD: // the device is gone
			dropAll(w.out[i:], frame.PortDown)
			w.errno = errno
			return
		default: // EINVAL: shorter than an Ethernet header
			o.Drop = frame.SendFailed
		}
	}
}
