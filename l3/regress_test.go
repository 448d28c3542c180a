package l3

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Packets of IPv6 that were routed to a link with an MTU below 1280: what is not longer than
// that made an answer longer than itself, which there was no room for, and a panic. It is
// dropped; what is longer is answered.
func TestRoutedToTinyLink(t *testing.T) {
	for _, c := range []struct {
		payload, mtu int
		want         frame.Verdict
	}{
		{1024 - 48, 1014, frame.Drop(frame.TooBig)},
		{1280 - 48, 1014, frame.Drop(frame.TooBig)},
		{1281 - 48, 1014, frame.Reenter},
		{1281 - 48, 1294, frame.Reenter},
		{1281 - 48, 0, frame.Reenter},
		{64, 0, frame.Drop(frame.TooBig)},
	} {
		l := newLab(t, nil)
		l.knows(l.i10, 1, 0)
		s := between(true, 1, 4)
		s.payload, s.ttl, s.to, s.from = c.payload, 63, host(4), gate(20)
		in := s.bytes(t)
		f := frame.Make(in)
		f.VNI = 20
		if v := l.i20.PathMTU().Process(&f, frame.At{MTU: c.mtu}); v != c.want {
			t.Errorf("%d bytes, MTU %d: %v, want %v", c.payload+48, c.mtu, v, c.want)
		} else if v != frame.Reenter && !bytes.Equal(f.Bytes(), in) {
			t.Errorf("%d bytes, MTU %d: changed", c.payload+48, c.mtu)
		} else if v == frame.Reenter && f.Len() != 14+icmperr.MinMTU6 {
			t.Errorf("%d bytes, MTU %d: an answer of %d bytes", c.payload+48, c.mtu, f.Len())
		}
	}
}

// A fragment that goes on behind the end of any packet (RFC 791, section 3.2: 65,535 bytes)
// was cut into pieces whose offsets ran into the flags, so that a later one was the first
// fragment of another packet.
func TestFragmentBeyondTheEnd(t *testing.T) {
	l := newWireLab(t)
	for _, c := range []struct {
		offset, size int
		want         frame.Verdict
	}{
		{8191, 7, frame.Consume}, // 65,528 + 7
		{8191, 8, frame.Drop(frame.BadHeader)},
		{8191, 2000, frame.Drop(frame.BadHeader)},
		{8000, 1535, frame.Consume},
		{8000, 1536, frame.Drop(frame.BadHeader)},
	} {
		b := make([]byte, wire.IPv4Len+40+c.size) // 40 bytes of options that are to be passed on
		h := wire.IPv4Header{TTL: 9, Protocol: 17, TotalLen: uint16(len(b)), Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}}
		h.Put(b)
		b[0], b[6], b[7] = 0x4f, byte(c.offset>>8), byte(c.offset)
		for i := wire.IPv4Len; i < 60; i++ {
			b[i] = 1
		}
		p := wire.IPv4(b)
		p.SetChecksum(0)
		p.SetChecksum(wire.Checksum(wire.Sum(b[:60], 0)))
		f := frame.Make(b)
		f.Kind, f.From = frame.IPv4, near
		l.sent = nil
		v := l.PathMTU().Process(&f, frame.At{MTU: 68, To: far})
		if v != c.want || (v == frame.Consume) != (len(l.sent) > 0) {
			t.Errorf("%d bytes at %d: %v, %d pieces, want %v", c.size, c.offset*8, v, len(l.sent), c.want)
		}
		for _, x := range l.sent {
			if got := wire.IPv4(x.f.Bytes()).FragmentOffset(); got < c.offset*8 {
				t.Errorf("%d bytes at %d: a piece at %d", c.size, c.offset*8, got)
			}
		}
	}
}
