package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// packet makes a frame of message r.At, an IP packet whose payload is the inner packet. It
// reports false when that has to wait for the next batch.
//
// It may be longer than any MTU: fragments come as the packet they were, and what the kernel
// has joined on its way here (GRO) comes as one, with a TCP checksum that is still to be
// finished (Linux 6.18).
func (r *reader) packet(b *frame.Batch, m *sys.Mmsghdr) bool {
	f := r.whole(b, m)
	if f == nil {
		return false
	}
	f.Kind = r.kind
	if m.Hdr.Flags&unix.MSG_TRUNC != 0 {
		f.Drop = frame.TooBig
		r.Rx.Truncated.Add(1)
	}
	if r.u.is4 && !pullIPv4(f) {
		f.Drop = frame.BadHeader
	}
	return true
}

// pullIPv4 takes the outer header off a packet, with its options, which an IPv4 raw socket
// hands over and an IPv6 one does not (raw(7)). It reports false when there is none (RFC 791,
// section 3.1).
func pullIPv4(f *frame.Frame) bool {
	p := f.Bytes()
	if len(p) < 20 || p[0]>>4 != 4 {
		return false
	}
	n := int(p[0]&15) * 4
	if n < 20 || n > len(p) {
		return false
	}
	f.Pull(n)
	return true
}
