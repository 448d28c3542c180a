package port

import (
	"syscall"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// deviceWriter writes one system call a packet.
type deviceWriter struct {
	d      *Device
	q      *queue
	emit   func(fd uintptr) // send, as a closure made once
	head   tagHead
	gather sys.Gather
	pieces [2][]byte

	out   []frame.Out   // of the Write under way
	errno syscall.Errno // that broke the port
}

func (w *deviceWriter) Write(out []frame.Out) error {
	w.out, w.errno = out, 0
	// Not Conn.Write: that keeps the writers of other workers waiting. Control only
	// keeps the descriptor open, and tun takes concurrent writes.
	err := w.q.Conn.Control(w.emit)
	w.out = nil
	switch {
	case err != nil: // closed
		dropAll(out, frame.PortDown)
		return w.d.over(err)
	case w.errno != 0:
		return w.d.over(w.errno)
	}
	return nil
}

func (w *deviceWriter) send(fd uintptr) {
	w.d.refresh()
	for i := range w.out {
		o := &w.out[i]
		if o.Drop = w.unfit(o); o.Drop != frame.NotDropped {
			continue
		}
		var errno syscall.Errno
		if packet := o.F.Bytes(); o.Tag == 0 {
			_, errno = sys.WriteFD(fd, packet)
		} else {
			w.pieces = [2][]byte{w.head.fill(packet, o.Tag), packet[macLen:]}
			_, errno = w.gather.WriteFD(fd, w.pieces[:])
			w.pieces = [2][]byte{}
		}
		if o.Drop = dropFor(errno); errno == sys.EBADFD {
			dropAll(w.out[i:], frame.PortDown)
			w.errno = errno
			return
		}
	}
}

// unfit says why the device cannot send the frame, or NotDropped.
func (w *deviceWriter) unfit(o *frame.Out) frame.Reason {
	if !w.d.tun {
		return unfit(o)
	}
	switch {
	case o.F.Kind != frame.IPv4 && o.F.Kind != frame.IPv6, o.Tag != 0:
		return frame.BadKind
	case o.F.GSO != frame.GSO{}:
		return frame.SendFailed
	}
	return frame.NotDropped
}

// dropFor returns what an errno of write(2) means for the frame.
func dropFor(errno syscall.Errno) frame.Reason {
	switch errno {
	case 0:
		return frame.NotDropped
	case syscall.EAGAIN, syscall.ENOBUFS, syscall.ENOMEM:
		return frame.PortFull
	case syscall.EIO, sys.EBADFD: // the device is down, or gone
		return frame.PortDown
	}
	return frame.SendFailed // EINVAL: shorter than its headers
}
