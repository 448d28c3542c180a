package underlay

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// perMessage returns how many datagrams of a run one message carries: 1 if the kernel must not cut runs, and for a
// single datagram.
func (s *sender) perMessage(d *frame.Datagram) int {
	if d.Seg == 0 || !s.set.runs || !s.u.runs || s.set.split.Load() {
		return 1
	}
	return max(1, min(datagrams.MaxSegs, (datagrams.MaxPacket-s.u.overhead)/int(d.Seg)))
}

// addRun builds the messages of run i, with per datagrams in each, endpoint by endpoint, so that losses are counted
// once for each endpoint.
func (s *sender) addRun(t *txSock, i uint8, per int) {
	d := &s.Window[i]
	n, seg := datagrams.Size(d), int(d.Seg)
	for k := range d.To {
		if d.To[k].Is4() != s.u.is4 {
			s.flush(t) // count the losses of other endpoints first
			s.Lose(datagrams.Copy{D: i, Segs: int32(datagrams.Segments(d)), To: int32(k)}, frame.Unreachable)
			continue
		}
		c := datagrams.At(d.Parts, 0)
		for left := n; ; {
			s.room(t, len(d.Parts))
			iov, took := s.out.Take(len(s.out.IOV), &c, min(left, per*seg), seg)
			who := datagrams.Copy{D: i, Segs: 1, To: int32(k)}
			if took > seg {
				who.Segs, who.Seg = int32((took+seg-1)/seg), d.Seg
			}
			if took > 0 || left == 0 {
				s.message(i, k, iov, s.control(d, who.Seg), who)
			} else { // a datagram of more pieces than the kernel takes
				s.flush(t)
				s.Lose(who, frame.SendFailed)
				took = min(left, seg)
				c.Skip(took)
			}
			if left -= took; left == 0 {
				break
			}
		}
	}
}

// single is scratch memory for the datagrams of a refused run.
type single struct {
	msgs [datagrams.MaxSegs]sys.Mmsghdr
	who  [datagrams.MaxSegs]datagrams.Copy
	iov  [datagrams.MaxIov + datagrams.MaxSegs]unix.Iovec
}

// sendSingly sends the datagrams of a refused run one by one through the same socket, so that each gets its own error.
func (s *sender) sendSingly(fd uintptr, m *sys.Mmsghdr, who datagrams.Copy) {
	a := &s.single
	from := unsafe.Slice(m.Hdr.Iov, int(m.Hdr.Iovlen))
	n, used := 0, 0
	for off := 0; len(from) > 0 && n < datagrams.MaxSegs; n++ {
		start := used
		for left := int(who.Seg); left > 0 && len(from) > 0; {
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
		a.who[n] = datagrams.Copy{D: who.D, Segs: 1, To: who.To}
	}
	s.push(fd, a.msgs[:n], a.who[:n])
	clear(a.msgs[:n])
	clear(a.iov[:used]) // let go of the frames
}
