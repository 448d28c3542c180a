package icmperr

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// FuzzTooBig: whatever the frame, its superframe fields and the MTU, nothing panics; an
// answer decodes, has the right checksums, is not longer than the MTU and goes back;
// and what is not answered is not changed.
func FuzzTooBig(f *testing.F) {
	for _, b := range [][]byte{
		udp4(f, 1500), udp4(f, 200, 7), udp4(f, 200, 7, 9), udp6(f, 1500), udp6(f, 1400, 7), nil, udp4(f, 30)[:14],
	} {
		f.Add(b, 1464, uint16(0), uint16(0))
		f.Add(b, 1298, uint16(1300), uint16(frame.Headroom+42))
		f.Add(b, 100, uint16(90), uint16(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, mtu int, size, start uint16) {
		s := newTooBig(0, 0)
		g := entered(b)
		g.GSO.Size, g.GSO.DataStart = size, start
		switch v := s.Process(&g, frame.At{MTU: mtu}); v {
		case frame.Reply:
			if g.Len() > mtu || g.Len() >= len(b) || g.GSO != (frame.GSO{}) {
				t.Errorf("%d bytes, MTU %d, %+v", g.Len(), mtu, g.GSO)
			}
			a := decode(t, g.Bytes())
			if back := g.Bytes(); frame.MAC(back) != frame.MAC(b[6:]) || frame.MAC(back[6:]) != frame.MAC(b) {
				t.Errorf("from %v to %v", a.eth.SrcMAC, a.eth.DstMAC)
			}
		case frame.Continue, frame.Drop(frame.TooBig):
			if string(g.Bytes()) != string(b) {
				t.Errorf("%v, and changed", v)
			}
		default:
			t.Errorf("%v", v)
		}
	})
}
