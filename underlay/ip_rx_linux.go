package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// packet makes a frame of message r.At, an IP packet whose payload is the inner packet. It returns false if the batch is
// full.
//
// The packet may be longer than any MTU: the kernel reassembles fragments and joins packets (GRO), whose TCP checksum
// then is unfinished (Linux 6.18).
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

// pullIPv4 removes the outer header and its options, which an IPv4 raw socket returns and an IPv6 raw socket does not
// (raw(7)). It returns false if the header is invalid (RFC 791, section 3.1).
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
