package l3

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
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
		if v := l.i20.TooBig().Process(&f, frame.At{MTU: c.mtu}); v != c.want {
			t.Errorf("%d bytes, MTU %d: %v, want %v", c.payload+48, c.mtu, v, c.want)
		} else if v != frame.Reenter && !bytes.Equal(f.Bytes(), in) {
			t.Errorf("%d bytes, MTU %d: changed", c.payload+48, c.mtu)
		} else if v == frame.Reenter && f.Len() != 14+minMTU6 {
			t.Errorf("%d bytes, MTU %d: an answer of %d bytes", c.payload+48, c.mtu, f.Len())
		}
	}
}
