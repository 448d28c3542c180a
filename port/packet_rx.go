package port

import (
	"syscall"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// A packetQueue is a receiving socket, with its reader.
type packetQueue struct {
	*sys.PacketSocket
	p      *Packet
	reader deviceReader
	rx     sys.PacketReader
	head   []byte // the gso.Virtio of the frame that is read, empty without offloads
}

// next puts the VLAN tag of a frame back in front of its type: it moves the addresses, so that the rest
// stays where it is.
func (q *packetQueue) next(fd uintptr, b *frame.Batch, f *frame.Frame) (int, syscall.Errno) {
	n, aux, errno := q.rx.Read(fd, q.head, f.Bytes())
	for errno == syscall.ENETDOWN { // reported once when the interface goes down
		n, aux, errno = q.rx.Read(fd, q.head, f.Bytes())
	}
	switch errno {
	case 0:
	case syscall.EINVAL: // a superframe that virtio cannot describe; the kernel has dropped it (Linux 6.18)
		b.Shrink(0)
		f.Drop = frame.BadHeader
		return 0, 0
	default:
		return 0, errno
	}
	off := f.Headroom()
	b.Shrink(n)
	if aux.VLAN && n >= macLen {
		p := f.Push(vlanLen)
		copy(p[:macLen], p[vlanLen:])
		p[macLen], p[macLen+1] = byte(aux.TPID>>8), byte(aux.TPID)
		p[macLen+2], p[macLen+3] = byte(aux.TCI>>8), byte(aux.TCI)
	}
	switch {
	case aux.Cut:
		f.Drop = frame.TooBig
	case len(q.head) > 0:
		f.Drop = (*gso.Virtio)(q.head).Apply(f, off)
	default:
		f.Drop = q.p.single(f, &aux)
	}
	return n, 0
}

// single checks that f, which has no virtio header, can be a single frame, and marks an incomplete
// checksum.
func (p *Packet) single(f *frame.Frame, aux *sys.PacketAux) frame.Reason {
	longest := p.MTU(0)
	if aux.VLAN {
		longest += vlanLen
	}
	switch {
	case f.Len() > longest:
		return frame.TooBig
	case aux.Unfinished:
		return gso.Unfinished(f)
	}
	return frame.NotDropped
}
