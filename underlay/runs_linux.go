package underlay

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

const (
	// maxSegs is how many datagrams one message may be cut into. Linux 6.18 takes 128,
	// older kernels take 64.
	maxSegs = 64

	// maxPacket is the longest IP packet, headers included: a run fits in one before it
	// is cut. IPv6 would count its header extra (65,527 bytes of payload are taken by
	// Linux 6.18), but devices take 65,536 bytes in all and the rest is cut in software.
	maxPacket = 65535
)

// perMessage returns how many datagrams of a run one message carries, 1 when the kernel
// is not to cut runs. For what is no run it is 1 too.
func (s *sender) perMessage(d *frame.Datagram) int {
	if d.Seg == 0 || !s.set.runs || !s.u.runs.Load() || s.set.split.Load() {
		return 1
	}
	return max(1, min(maxSegs, (maxPacket-s.u.overhead)/int(d.Seg)))
}

// addRun builds the messages of run i, with per datagrams in each: endpoint by endpoint,
// so that what is lost is counted once for each.
func (s *sender) addRun(t *txSock, i uint8, per int) {
	d := &s.win[i]
	n, seg := datagrams.Size(d), int(d.Seg)
	for k := range d.To {
		if d.To[k].Is4() != s.u.is4 {
			s.flush(t) // what belongs to other endpoints is counted first
			s.lose(copyOf{d: i, segs: int32(datagrams.Segments(d)), to: int32(k)}, frame.Unreachable)
			continue
		}
		c := datagrams.At(d.Parts, 0)
		for left := n; ; {
			s.room(t, len(d.Parts))
			iov, took := s.take(&c, min(left, per*seg), seg)
			who := copyOf{d: i, segs: 1, to: int32(k)}
			if took > seg {
				who.segs, who.seg = int32((took+seg-1)/seg), d.Seg
			}
			if took > 0 || left == 0 {
				s.message(i, k, iov, s.control(d, who.seg), who)
			} else { // one datagram of more pieces than the kernel takes
				s.flush(t)
				s.lose(who, frame.SendFailed)
				took = min(left, seg)
				c.Skip(took)
			}
			if left -= took; left == 0 {
				break
			}
		}
	}
}

// take moves the cursor n bytes on and appends what it passed to the scratch. When that
// is more pieces than one message may have it stops at a multiple of seg, or, with seg 0
// or when not even one segment fits, takes nothing. It returns the pieces and their
// bytes.
func (s *sender) take(c *datagrams.Cursor, n, seg int) (iov []unix.Iovec, took int) {
	start := len(s.iov)
	whole, end, done := *c, start, 0 // after the last whole segment
	for took < n {
		if len(s.iov)-start == maxIov {
			*c = whole
			clear(s.iov[end:])
			s.iov = s.iov[:end]
			return s.iov[start:], done
		}
		k := n - took
		if seg > 0 {
			k = min(k, done+seg-took)
		}
		p := c.Next(k)
		v := unix.Iovec{Base: unsafe.SliceData(p)}
		v.SetLen(len(p))
		s.iov = append(s.iov, v)
		took += len(p)
		if took == done+seg {
			whole, end, done = *c, len(s.iov), took
		}
	}
	return s.iov[start:], took
}

// apart is scratch for the datagrams of a run that was refused.
type apart struct {
	msgs [maxSegs]sys.Mmsghdr
	who  [maxSegs]copyOf
	iov  [maxIov + maxSegs]unix.Iovec
}

// refused reports whether the kernel may have refused a message because it is a run:
// EIO where the way out can neither cut nor sum (IPsec; on older kernels a device without
// checksum offload), EMSGSIZE, or EINVAL on older kernels, for segments above the MTU of
// the interface, EINVAL on a socket without checksums (Linux 6.18), the others from
// kernels yet to come. Out of room (ENOBUFS, EAGAIN) is no such cause: single datagrams
// would need more of it.
func refused(e unix.Errno) bool {
	switch e {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		return true
	}
	return false
}

// sendApart sends the datagrams of a run that was refused one by one, through the same
// socket: what is wrong with a datagram itself is then told for each.
func (s *sender) sendApart(fd uintptr, m *sys.Mmsghdr, who copyOf) {
	a := &s.apart
	from := unsafe.Slice(m.Hdr.Iov, int(m.Hdr.Iovlen))
	n, used := 0, 0
	for off := 0; len(from) > 0 && n < maxSegs; n++ {
		start := used
		for left := int(who.seg); left > 0 && len(from) > 0; {
			k := min(left, int(from[0].Len)-off)
			v := &a.iov[used]
			v.Base = (*byte)(unsafe.Add(unsafe.Pointer(from[0].Base), off))
			v.SetLen(k)
			used++
			left -= k
			if off += k; off == int(from[0].Len) {
				from, off = from[1:], 0
			}
		}
		h := &a.msgs[n].Hdr
		*h = m.Hdr
		h.Iov = &a.iov[start]
		h.SetIovlen(used - start)
		h.SetControllen(int(m.Hdr.Controllen) - sys.CmsgInt) // without UDP_SEGMENT
		a.who[n] = copyOf{d: who.d, segs: 1, to: who.to}
	}
	s.push(fd, a.msgs[:n], a.who[:n])
	clear(a.msgs[:n])
	clear(a.iov[:used]) // the frames are not ours any more
}
