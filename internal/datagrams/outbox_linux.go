package datagrams

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

const (
	Chunk  = 128  // messages handed to the kernel at once
	MaxIov = 1024 // UIO_MAXIOV: pieces of memory the kernel takes for one message
	allIov = 2 * MaxIov

	// MaxSegs is how many datagrams one message may be cut into. Linux 6.18 takes 128, older
	// kernels take 64.
	MaxSegs = 64

	// MaxPacket is the longest IP packet, headers included: a run fits in one before it is cut.
	// IPv6 would count its header extra (65,527 bytes of payload are taken by Linux 6.18), but
	// devices take 65,536 bytes in all and the rest is cut in software.
	MaxPacket = 65535
)

// An Outbox is messages on their way to the kernel. Make one with NewOutbox.
type Outbox struct {
	N    int
	Msgs [Chunk]sys.Mmsghdr
	Who  [Chunk]Copy
	IOV  []unix.Iovec // of capacity allIov, which it never outgrows
}

// NewOutbox returns an empty one.
func NewOutbox() Outbox { return Outbox{IOV: make([]unix.Iovec, 0, allIov)} }

// Fits reports whether there is room for a message of that many pieces.
func (o *Outbox) Fits(pieces int) bool {
	return o.N < Chunk && len(o.IOV)+min(pieces, MaxIov) <= allIov
}

// Take appends the next n bytes of a payload to the pieces of the message that begins at start.
// When that is more pieces than one message may have it stops at a multiple of seg, or, with seg 0
// or when not even one segment fits, gives up the message. It returns the pieces, and the bytes it
// took.
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

// Put adds a message of these pieces; what else is in its header is the caller's.
func (o *Outbox) Put(iov []unix.Iovec, who Copy) *unix.Msghdr {
	h := &o.Msgs[o.N].Hdr
	h.Iov = unsafe.SliceData(iov)
	h.SetIovlen(len(iov))
	o.Who[o.N] = who
	o.N++
	return h
}

// Clear forgets all messages: their frames are not ours any more.
func (o *Outbox) Clear() {
	clear(o.IOV)
	o.N, o.IOV = 0, o.IOV[:0]
}

// Refused books the first of several messages as refused, and all of them where the socket's buffer
// is full: there is no room for the rest either. It returns how many it booked.
func (l *Ledger) Refused(who []Copy, e unix.Errno, why frame.Reason) int {
	if e != unix.EAGAIN {
		who = who[:1]
	}
	for _, c := range who {
		l.Lose(c, why)
	}
	return len(who)
}

// RefusedRun reports whether the kernel may have refused a message because it is a run:
// EIO where the way out can neither cut nor sum (IPsec; on older kernels a device without
// checksum offload), EMSGSIZE, or EINVAL on older kernels, for segments above the MTU of
// the interface, EINVAL on a socket without checksums (Linux 6.18), the others from
// kernels yet to come. Out of room (ENOBUFS, EAGAIN) is no such cause: single datagrams
// would need more of it.
func RefusedRun(e unix.Errno) bool {
	switch e {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		return true
	}
	return false
}

// Verdict says why a message was refused, and whether the error is certainly its own. ENOBUFS is a
// queue of the interface that dropped the packet, which is told only with IP_RECVERR. EINVAL is a
// destination that cannot be reached from our source address, or port 0; ENODEV a device that is
// gone.
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
