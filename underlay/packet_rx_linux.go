package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// A packetReader receives from one packet socket. One message is one Ethernet frame, of one
// datagram or of a run. Its frames lie where it was received.
type packetReader struct {
	inbox
	p    *Packet
	sock *sys.PacketSocket
	call func(fd uintptr) bool // recv, made once

	place  *packetPlace // while something is delivered
	inside bool         // info is of message at, of which some is left
	info   packetInfo   // of message at
	heads  [rxMessages]vnet
	iov    [rxMessages][2]unix.Iovec
}

func newPacketReader(p *Packet, s *sys.PacketSocket) *packetReader {
	r := &packetReader{p: p, sock: s, inbox: inbox{want: minWant, busy: sys.BusyPoll{Max: p.cfg.BusyPoll}}}
	r.call = r.recv
	for i := range r.msgs {
		h := &r.msgs[i].Hdr
		r.iov[i][0].Base = &r.heads[i][0]
		r.iov[i][0].SetLen(vnetLen)
		h.Iov, r.into[i] = &r.iov[i][0], &r.iov[i][1]
		h.SetIovlen(2)
	}
	return r
}

// Read implements [frame.Reader]. Runs are split; the frames of one are not spread over two
// batches unless there are more than [frame.MaxBatch]. What is refused has its Drop set.
func (r *packetReader) Read(b *frame.Batch) error {
	b.Reset()
	r.pool = b.Pool()
	defer func() { r.pool = nil }()
	for {
		if r.at == r.n {
			if err := r.receive(b); err != nil {
				r.release()
				b.Release()
				return r.p.dev.Ended(err)
			}
		} else if err := r.p.dev.Stopped(); err != nil {
			return r.stop(b, err)
		}
		r.deliver(b)
		if len(b.Frames) > 0 { // else nothing was for us
			return nil
		}
	}
}

// receive waits for messages.
func (r *packetReader) receive(b *frame.Batch) error {
	for failed := 0; ; failed++ {
		r.n, r.at, r.errno, r.inside = 0, 0, 0, false
		if err := r.sock.Conn.Read(r.call); err != nil {
			return err
		}
		switch r.errno {
		case 0:
			r.adapt()
			return nil
		case unix.ENETDOWN: // told once when the interface goes down
		case unix.EINVAL: // a superframe that virtio has no name for, gone with the error (Linux 6.18)
			r.rx.Errors.Add(1)
			b.Reset()
			if b.New(0) != nil {
				b.Frames[0].Drop = frame.BadHeader
				b.Outer[0] = frame.Outer{If: uint32(r.p.dev.Index)}
			}
			return nil
		case unix.ENOMEM, unix.ENOBUFS:
			r.rx.Errors.Add(1)
		default:
			return r.errno
		}
		r.release()
		b.Release()
		if err := backOff(failed, r.p.dev.Done()); err != nil {
			return err
		}
	}
}

// recv is called when the socket may be readable; false asks to be called again when it is.
// It holds no packet memory while it waits.
func (r *packetReader) recv(fd uintptr) bool {
	r.prepare(frame.BlockSize)
	return r.take(fd)
}

// deliver makes frames of the messages received, as many as the batch takes.
func (r *packetReader) deliver(b *frame.Batch) {
	taken := 0
	r.place = r.p.place.Load()
	for ; r.at < r.n; r.at, r.inside = r.at+1, false {
		before := len(b.Frames)
		done := r.split(b)
		if len(b.Frames) > before && b.Frames[before].Drop == frame.NotDropped {
			taken += len(b.Frames) - before
		}
		if !done {
			break
		}
	}
	r.rx.Datagrams.Add(uint64(taken))
}

// split makes frames of message r.at, or of what is left of it. It reports false when some
// are left for the next batch.
func (r *packetReader) split(b *frame.Batch) bool {
	x, start := r.blocks[r.at][:], roomAt(r.at)
	m, p := &r.msgs[r.at], &r.info
	if !r.inside {
		n := max(int(m.Len)-vnetLen, 0)
		drop, ours := r.place.rules.parse(x[start:start+n], &r.heads[r.at], p)
		if !ours {
			return true
		}
		if m.Hdr.Flags&unix.MSG_TRUNC != 0 {
			r.rx.Truncated.Add(1)
			drop = frame.TooBig
		}
		if drop != frame.NotDropped {
			f := b.Borrow(x, start, start+n)
			if f == nil {
				return false
			}
			f.Drop = drop
			b.Outer[len(b.Outer)-1] = r.outer(p)
			return true
		}
	}
	seg := p.seg
	if seg == 0 {
		seg = p.to - p.from
	} else if left := (p.to - p.from + seg - 1) / seg; left > frame.MaxBatch-len(b.Frames) && len(b.Frames) > 0 {
		r.inside = true
		return false
	} else if !r.inside {
		r.rx.Runs.Add(1)
		r.rx.Segments.Add(uint64(left))
	}
	outer := r.outer(p)
	for first := !r.inside; ; first = false {
		end := min(p.from+seg, p.to)
		lo, hi := start+p.from, start+end
		if first { // the outer headers, which nobody needs any more, are room in front of it
			lo = start - frame.Headroom
		}
		if end == p.to {
			hi = len(x)
		}
		f := b.Borrow(x[lo:hi:hi], start+p.from-lo, start+end-lo)
		if f == nil {
			r.inside = true
			return false
		}
		if p.csum != 0 {
			f.GSO = frame.GSO{
				Flags: frame.NeedsCsum, Type: p.inner, Size: uint16(p.size),
				CsumStart: uint16(start + p.csum - lo), CsumOffset: uint16(p.offset),
			}
		}
		b.Outer[len(b.Outer)-1] = outer
		if p.from = end; end == p.to {
			return true
		}
	}
}

func (r *packetReader) outer(p *packetInfo) frame.Outer {
	o := frame.Outer{Src: p.src, If: uint32(r.p.dev.Index), TOS: p.tos, TTL: p.ttl}
	o.Dst.IP, o.Dst.Port = p.dst, r.place.rules.port
	if o.Dst.IsLinkLocal() {
		o.Dst.Scope = o.If
	}
	if o.Src.IsLinkLocal() {
		o.Src.Scope = o.If
	}
	return o
}

func (r *packetReader) addTo(st *datagrams.Counts) {
	if v, ok := r.sock.Drops(); ok {
		r.dropped.seen(v)
	}
	st.RxOverflow += r.dropped.total
	r.rx.AddTo(st)
}
