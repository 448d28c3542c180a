package datagrams

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

const (
	Chunk  = 128  // messages for one system call
	MaxIov = 1024 // UIO_MAXIOV: maximum of memory pieces in a message
	allIov = 2 * MaxIov

	// MaxSegs is the maximum of datagrams in a message. Linux 6.18 allows 128, older kernels 64.
	MaxSegs = 64

	// MaxPacket is the longest IP packet with headers; a run must fit in one before it is cut. Over IPv6 the header would
	// not count (Linux 6.18 takes 65,527 bytes of payload), but devices take 65,536 bytes in all, and software cuts the
	// rest.
	MaxPacket = 65535
)

// An Outbox holds messages to send. Make one with NewOutbox.
type Outbox struct {
	N    int
	Msgs [Chunk]sys.Mmsghdr
	Who  [Chunk]Copy
	IOV  []unix.Iovec // of capacity allIov, which is never exceeded
}

// NewOutbox returns an empty Outbox.
func NewOutbox() Outbox { return Outbox{IOV: make([]unix.Iovec, 0, allIov)} }

// Fits reports whether there is room for a message of that many pieces.
func (o *Outbox) Fits(pieces int) bool {
	return o.N < Chunk && len(o.IOV)+min(pieces, MaxIov) <= allIov
}

// Take appends the next n bytes of a payload to the pieces of the message that begins at start. If they need more pieces
// than a message may have, it stops at a multiple of seg, or, with seg 0 or if not even one segment fits, drops the
// message. It returns the pieces and the number of bytes.
func (o *Outbox) Take(start int, c *Cursor, n, seg int) (iov []unix.Iovec, took int) {
	whole, end, done := *c, start, 0 // after the last whole segment
	for took < n {
		if len(o.IOV)-start == MaxIov {
			*c = whole
			clear(o.IOV[end:])
			o.IOV = o.IOV[:end]
			return o.IOV[start:], done
		}
		k := n - took
		if seg > 0 {
			k = min(k, done+seg-took)
		}
		p := c.Next(k)
		v := unix.Iovec{Base: unsafe.SliceData(p)}
		v.SetLen(len(p))
		o.IOV = append(o.IOV, v)
		took += len(p)
		if took == done+seg {
			whole, end, done = *c, len(o.IOV), took
		}
	}
	return o.IOV[start:], took
}

// Put adds a message of these pieces; the caller fills in the rest of its header.
func (o *Outbox) Put(iov []unix.Iovec, who Copy) *unix.Msghdr {
	h := &o.Msgs[o.N].Hdr
	h.Iov = unsafe.SliceData(iov)
	h.SetIovlen(len(iov))
	o.Who[o.N] = who
	o.N++
	return h
}

// Clear removes all messages and the references to their frames.
func (o *Outbox) Clear() {
	clear(o.IOV)
	o.N, o.IOV = 0, o.IOV[:0]
}

// Refused counts the first of several messages as refused, or all of them if the socket's buffer is full. It returns how
// many it counted.
func (l *Ledger) Refused(who []Copy, e unix.Errno, why frame.Reason) int {
	if e != unix.EAGAIN {
		who = who[:1]
	}
	for _, c := range who {
		l.Lose(c, why)
	}
	return len(who)
}

// RefusedRun reports whether the kernel may have refused a message because it is a run: EIO if the interface can
// neither cut nor checksum (IPsec; in older kernels a device without checksum offload), EMSGSIZE, or EINVAL in older
// kernels, for segments above the interface's MTU, EINVAL on a socket without checksums (Linux 6.18), and other errors of
// future kernels. Lack of memory (ENOBUFS, EAGAIN) is not a reason: single datagrams would need more.
func RefusedRun(e unix.Errno) bool {
	switch e {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		return true
	}
	return false
}

// Verdict returns the reason for refusing a message, and whether the error is certainly about that message. ENOBUFS means
// that a queue of the interface dropped the packet, reported only with IP_RECVERR; EINVAL that the destination cannot be
// reached from the source address, or port 0; ENODEV that the device is gone.
func Verdict(e unix.Errno) (why frame.Reason, own bool) {
	switch e {
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
		return frame.PortFull, true
	case unix.EMSGSIZE:
		return frame.TooBig, false
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, unix.EHOSTDOWN,
		unix.ENONET, unix.EADDRNOTAVAIL, unix.EINVAL, unix.ENODEV, unix.ENXIO:
		return frame.Unreachable, false
	}
	return frame.SendFailed, false
}
