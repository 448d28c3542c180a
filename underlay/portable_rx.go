package underlay

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"

	"golang.org/x/net/ipv4"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
)

const (
	portableBatch   = 64 // maximum of datagrams received or sent at once
	portableControl = 256
)

// A portableReader receives from one socket: that of the local address, or that of multicast groups, which opens with the
// first group. It owns the memory of its frames.
type portableReader struct {
	u    *Portable
	sock atomic.Pointer[portableSocket]
	rx   datagrams.Rx
	buf  [][]byte // of messages, with headroom
	msgs []ipv4.Message
	from [portableBatch]netip.AddrPort
}

func newPortableReader(u *Portable, s *portableSocket) *portableReader {
	r := &portableReader{u: u}
	r.sock.Store(s)
	return r
}

// prepare makes room for messages one byte longer than allowed, to detect longer ones.
func (r *portableReader) prepare() {
	n := 1
	if r.u.batch {
		n = portableBatch
	}
	r.buf, r.msgs = make([][]byte, n), make([]ipv4.Message, n)
	for i := range r.msgs {
		r.buf[i] = make([]byte, frame.Headroom+r.u.cfg.MaxDatagram+1)
		r.msgs[i].Buffers = [][]byte{r.buf[i][frame.Headroom:]}
		r.msgs[i].OOB = make([]byte, portableControl)
	}
}

// Read implements [frame.Reader].
func (r *portableReader) Read(b *frame.Batch) error {
	b.Release()
	for failed := 0; ; failed++ {
		n := 0
		s, err := r.socket()
		if err == nil {
			n, err = r.receive(s)
		}
		switch stopped := r.u.stopped(); {
		case err == nil:
			if r.deliver(b, n) {
				return nil
			}
			failed = 0
			continue
		case stopped != nil:
			return stopped
		case errors.Is(err, os.ErrDeadlineExceeded):
			return frame.ErrPaused // the pause is over
		case r.sock.Load() != s: // closed by Leave
			failed = 0
			continue
		}
		r.rx.Errors.Add(1)
		if err := datagrams.BackOff(failed, r.u.done); err != nil {
			return err
		}
	}
}

// socket returns the socket; the reader of groups waits for it.
func (r *portableReader) socket() (*portableSocket, error) {
	s, err := r.sock.Load(), r.u.stopped()
	if s == nil {
		r.u.mu.Lock()
		for s, err = r.sock.Load(), r.u.stopped(); s == nil && err == nil; s, err = r.sock.Load(), r.u.stopped() {
			r.u.begun.Wait()
		}
		r.u.mu.Unlock()
	}
	if r.buf == nil {
		r.prepare()
	}
	return s, err
}

// receive waits for a message and, if a call takes several, receives all others that are there.
func (r *portableReader) receive(s *portableSocket) (n int, err error) {
	m := &r.msgs[0]
	m.N, m.NN, m.Flags, r.from[0], err = s.ReadMsgUDPAddrPort(m.Buffers[0], m.OOB[:portableControl])
	switch {
	case err != nil && why(err) == frame.TooBig: // Windows
		m.N = len(m.Buffers[0])
	case err != nil:
		return 0, err
	}
	if !r.u.batch {
		return 1, nil
	}
	n, err = s.opts.ReadBatch(r.msgs[1:], dontWait)
	if err != nil {
		return 1, nil // no others
	}
	for i := range n {
		if a, ok := r.msgs[1+i].Addr.(*net.UDPAddr); ok {
			r.from[1+i] = a.AddrPort()
		}
	}
	return 1 + n, nil
}

// deliver makes frames of n messages. It returns false if none was for this underlay.
func (r *portableReader) deliver(b *frame.Batch, n int) bool {
	for i := range n {
		m, most := &r.msgs[i], r.u.cfg.MaxDatagram
		o := r.outer(m.OOB[:m.NN], r.from[i])
		if !r.wants(&o) {
			continue
		}
		f := b.Borrow(r.buf[i], frame.Headroom, frame.Headroom+min(m.N, most))
		if m.N > most {
			f.Drop = frame.TooBig
			r.rx.Truncated.Add(1)
		}
		b.Outer[len(b.Outer)-1] = o
	}
	r.rx.Datagrams.Add(uint64(len(b.Frames)))
	return len(b.Frames) > 0
}

// wants reports whether a datagram is for the underlay. A system may deliver packets to groups that other sockets have
// joined, maybe on other interfaces, and the socket of groups is on the wildcard address.
func (r *portableReader) wants(o *frame.Outer) bool {
	if o.Dst.IsMulticast() {
		d := r.u.device
		return (*r.u.joined.Load())[o.Dst.IP] > 0 && (d == nil || o.If == 0 || int(o.If) == d.Index)
	}
	return r == r.u.readers[0] || o.Dst == frame.Endpoint{}
}

// outer returns the contents of the control messages.
func (r *portableReader) outer(oob []byte, from netip.AddrPort) (o frame.Outer) {
	o.Src.IP, o.Src.Port = from.Addr().As16(), from.Port()
	for len(oob) > 0 {
		var level, typ int
		var data []byte
		if level, typ, data, oob = nextControl(oob); data == nil {
			break
		}
		tell(&o, level, typ, data)
	}
	for _, e := range []*frame.Endpoint{&o.Src, &o.Dst} {
		if e.IsLinkLocal() {
			e.Scope = o.If
		}
	}
	if o.Dst != (frame.Endpoint{}) {
		o.Dst.Port = r.u.local.Port()
	}
	return o
}

// Levels of control messages are the same on all systems; some layouts differ by their length.
const (
	levelIP   = 0
	levelIPv6 = 41
)

// tell adds a control message to o. The structures are those of ip(4), ip(7) and RFC 3542, section 6.
func tell(o *frame.Outer, level, typ int, data []byte) {
	is4 := level == levelIP
	switch {
	case !is4 && level != levelIPv6 || len(data) == 0:
	case is4 && (typ == ctlTTL4 || typ == ctlTOS4), !is4 && (typ == ctlTTL6 || typ == ctlTOS6):
		v := data[0] // an octet, or an int
		if len(data) >= 4 {
			v = byte(binary.NativeEndian.Uint32(data))
		}
		if is4 && typ == ctlTTL4 || !is4 && typ == ctlTTL6 {
			o.TTL = v
		} else {
			o.TOS = v
		}
	case is4 && typ == ctlInfo4 && len(data) >= 12: // interface, local address, destination
		o.If, o.Dst.IP = binary.NativeEndian.Uint32(data), mapped(data[8:12])
	case is4 && typ == ctlInfo4 && len(data) == 8: // destination, interface
		o.If, o.Dst.IP = binary.NativeEndian.Uint32(data[4:]), mapped(data[:4])
	case is4 && typ == ctlDst4 && len(data) >= 4:
		o.Dst.IP = mapped(data[:4])
	case is4 && typ == ctlIf4 && len(data) >= 4: // sockaddr_dl
		o.If = uint32(binary.NativeEndian.Uint16(data[2:]))
	case !is4 && typ == ctlInfo6 && len(data) >= 20:
		o.Dst.IP, o.If = [16]byte(data), binary.NativeEndian.Uint32(data[16:])
	}
}

func mapped(a []byte) [16]byte { return netip.AddrFrom4([4]byte(a)).As16() }
