package afpacket

import (
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// A reader receives from one packet socket. A message is an Ethernet frame with a datagram or a run, which
// becomes frames in place.
type reader struct {
	datagrams.Inbox
	p    *Underlay
	sock *sys.PacketSocket
	call func(fd uintptr) bool // recv, made once

	rules *rules // while something is delivered
	info  info   // of message at
	heads [datagrams.MaxMessages]gso.Virtio
	iov   [datagrams.MaxMessages][2]unix.Iovec

	dropped datagrams.Drops
}

func newReader(p *Underlay, s *sys.PacketSocket) *reader {
	r := &reader{p: p, sock: s, Inbox: datagrams.Inbox{Want: datagrams.MinWant, Poll: sys.BusyPoll{Max: p.cfg.BusyPoll}}}
	r.call = r.recv
	for i := range r.Msgs {
		h := &r.Msgs[i].Hdr
		r.iov[i][0].Base = &r.heads[i][0]
		r.iov[i][0].SetLen(gso.VirtioLen)
		h.Iov, r.Into[i] = &r.iov[i][0], &r.iov[i][1]
		h.SetIovlen(2)
	}
	return r
}

// Read implements [frame.Reader]. The datagrams of a run are in one batch, unless there are more than
// [frame.MaxBatch].
func (r *reader) Read(b *frame.Batch) error {
	b.Reset()
	r.Pool = b.Pool()
	defer func() { r.Pool = nil }()
	for {
		if r.At == r.N {
			if err := r.receive(b); err != nil {
				r.Release()
				b.Release()
				return r.p.dev.Ended(err)
			}
		} else if err := r.p.dev.Stopped(); err != nil {
			return r.Stop(b, err)
		}
		r.deliver(b)
		if len(b.Frames) > 0 { // else all frames were for others
			return nil
		}
	}
}

// receive waits for messages.
func (r *reader) receive(b *frame.Batch) error {
	for failed := 0; ; failed++ {
		r.N, r.At, r.Errno = 0, 0, 0
		if err := r.sock.Conn.Read(r.call); err != nil {
			return err
		}
		switch r.Errno {
		case 0:
			r.Adapt()
			return nil
		case unix.ENETDOWN: // once, when the interface goes down
		case unix.EINVAL: // a superframe that virtio cannot describe; it is lost (Linux 6.18)
			r.Rx.Errors.Add(1)
			b.Reset()
			if b.New(0) != nil {
				b.Frames[0].Drop = frame.BadHeader
				b.Outer[0] = frame.Outer{If: uint32(r.p.dev.Index)}
			}
			return nil
		case unix.ENOMEM, unix.ENOBUFS:
			r.Rx.Errors.Add(1)
		default:
			return r.Errno
		}
		r.Release()
		b.Release()
		if err := datagrams.BackOff(failed, r.p.dev.Done()); err != nil {
			return err
		}
	}
}

// recv is called when the socket may be readable. It returns false to wait, and holds no packet memory then.
func (r *reader) recv(fd uintptr) bool {
	r.Prepare(frame.BlockSize)
	return r.Take(fd)
}

// deliver makes frames of messages until the batch is full.
func (r *reader) deliver(b *frame.Batch) {
	taken := 0
	r.rules = r.p.rules.Load()
	for ; r.At < r.N; r.At++ {
		before := len(b.Frames)
		done := r.split(b)
		if len(b.Frames) > before && b.Frames[before].Drop == frame.NotDropped {
			taken += len(b.Frames) - before
		}
		if !done {
			break
		}
	}
	r.Rx.Datagrams.Add(uint64(taken))
}

// split makes frames of the rest of message r.At. It returns false if some are left for the next batch.
func (r *reader) split(b *frame.Batch) bool {
	x, start := r.Blocks[r.At][:], datagrams.RoomAt(r.At)
	m, p := &r.Msgs[r.At], &r.info
	if !r.Begun() {
		n := max(int(m.Len)-gso.VirtioLen, 0)
		drop, match := r.rules.parse(x[start:start+n], &r.heads[r.At], p)
		if !match {
			return true
		}
		if m.Hdr.Flags&unix.MSG_TRUNC != 0 {
			r.Rx.Truncated.Add(1)
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
	}
	// The outer headers become headroom of the first frame.
	if !r.Split(b, p.from, p.to, seg, r.outer(p)) {
		return false
	}
	if p.kind != frame.Ethernet {
		b.Frames[len(b.Frames)-1].Kind = p.kind
	}
	if p.csum != 0 {
		f := &b.Frames[len(b.Frames)-1]
		f.GSO = frame.GSO{
			Flags: frame.NeedsCsum, Type: p.inner, Size: uint16(p.size),
			CsumStart: uint16(frame.Headroom + p.csum), CsumOffset: uint16(p.offset),
		}
	}
	return true
}

func (r *reader) outer(p *info) frame.Outer {
	o := frame.Outer{Src: p.src, If: uint32(r.p.dev.Index), TOS: p.tos, TTL: p.ttl}
	o.Dst.IP, o.Dst.Port = p.dst, r.rules.port
	if o.Dst.IsLinkLocal() {
		o.Dst.Scope = o.If
	}
	if o.Src.IsLinkLocal() {
		o.Src.Scope = o.If
	}
	return o
}

func (r *reader) addTo(st *datagrams.Counts) {
	if v, ok := r.sock.Drops(); ok {
		r.dropped.Seen(v)
	}
	st.RxOverflow += r.dropped.Total
	r.Rx.AddTo(st)
}
