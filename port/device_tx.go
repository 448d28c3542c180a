package port

import (
	"sync"
	"syscall"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// deviceWriter writes to a descriptor, for one worker.
type deviceWriter struct {
	of     owner
	conn   syscall.RawConn
	egress *egress
	emit   func(fd uintptr) // send, as a closure made once

	out   []frame.Out   // of the Write under way
	errno syscall.Errno // that broke the port
}

func (w *deviceWriter) Write(out []frame.Out) error {
	w.out, w.errno = out, 0
	// Not Conn.Write, which makes the writers of other workers wait. Control only keeps the descriptor
	// open, and the kernel allows concurrent writes.
	err := w.conn.Control(w.emit)
	w.out = nil
	switch {
	case err != nil: // closed
		dropAll(out, frame.PortDown)
		return w.of.over(err)
	case w.errno != 0:
		return w.of.over(w.errno)
	}
	return nil
}

func (w *deviceWriter) send(fd uintptr) {
	w.of.refresh()
	t := w.egress.transmitter(fd)
	t.send(w.out)
	w.errno = t.errno
	w.egress.transmitters.Put(t)
}

// An egress is what the descriptors of a port take, and the scratch memory of their writers.
type egress struct {
	tun    bool // IP packets
	header int  // length of the virtio header in front of each packet, 0 = none
	whole  bool // superframes are written as they are, and frames joined to superframes
	uso    bool // UDP superframes too

	transmitters sync.Pool // *transmitter
}

// offloads returns what the port takes.
func (e *egress) offloads() frame.Offloads {
	o := frame.OffloadVLAN
	if e.tun {
		o |= frame.IPOnly
	}
	if e.whole {
		o |= frame.OffloadCsum | frame.OffloadTSO4 | frame.OffloadTSO6
	}
	if e.uso {
		o |= frame.OffloadUSO
	}
	return o
}

// A transmitter writes frames, one packet per system call. With offloads, consecutive frames of a flow
// become one packet, and superframes are written as they are.
//
// It is mostly scratch memory. A port has one for each Write in progress, not for each worker.
type transmitter struct {
	takes frame.Offloads
	whole bool // of the egress

	joiner gso.Joiner
	head   wire.TagHead
	virtio []byte // a gso.Virtio and zeros, as long as the device wants it
	alone  [1][]byte
	parts  [][]byte
	gather sys.Gather

	fd    uintptr       // of the Write under way
	errno syscall.Errno // that broke the port
}

func (e *egress) transmitter(fd uintptr) *transmitter {
	t, _ := e.transmitters.Get().(*transmitter)
	if t == nil {
		t = &transmitter{takes: e.offloads(), whole: e.whole, virtio: make([]byte, e.header)}
		t.joiner.UDP = e.uso
	}
	t.fd, t.errno = fd, 0
	return t
}

func (t *transmitter) send(out []frame.Out) {
	for i := range out {
		out[i].Drop = unfit(&out[i], t.takes)
	}
	for len(out) > 0 {
		n := 1
		if out[0].Drop == frame.NotDropped {
			n = t.joined(out)
		}
		if t.errno != 0 {
			dropAll(out, frame.PortDown)
			return
		}
		out = out[n:]
	}
}

// joined writes the first frame, and those that can be joined to it, as one packet. It returns how many
// frames those are.
func (t *transmitter) joined(out []frame.Out) int {
	n, g := 1, frame.GSO{}
	t.alone[0] = out[0].F.Bytes()
	pieces := t.alone[:]
	if t.whole {
		n, g, pieces = t.joiner.Join(out)
	}
	tag := out[0].VLANTag()
	if tag != 0 {
		g = g.Moved(vlanLen)
	}
	t.parts = t.parts[:0]
	if len(t.virtio) > 0 {
		(*gso.Virtio)(t.virtio).Put(g)
		t.parts = append(t.parts, t.virtio)
	}
	t.parts = t.head.Gather(t.parts, tag, pieces...)
	dropAll(out[:n], t.writeParts(t.parts))
	clear(t.parts) // borrowed
	t.alone[0] = nil
	return n
}

// writeParts is one system call.
func (t *transmitter) writeParts(parts [][]byte) frame.Reason {
	var errno syscall.Errno
	if len(parts) == 1 {
		_, errno = sys.WriteFD(t.fd, parts[0])
	} else {
		_, errno = t.gather.WriteFD(t.fd, parts)
	}
	switch errno {
	case 0:
		return frame.NotDropped
	case syscall.EAGAIN, syscall.ENOBUFS, syscall.ENOMEM:
		return frame.PortFull
	case syscall.EIO, syscall.ENETDOWN: // the device is down: of tun, and of a packet socket
		return frame.PortDown
	case sys.EBADFD, syscall.ENXIO: // the device is deleted, likewise
		t.errno = errno
		return frame.PortDown
	case syscall.EMSGSIZE:
		return frame.TooBig
	}
	return frame.SendFailed // EINVAL: shorter than its headers
}
