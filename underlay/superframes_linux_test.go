package underlay

import (
	"bytes"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Whoever reads is asked about a message that is longer than a datagram, and about a run: whether it is
// one datagram. Then it is one frame, whole; otherwise it is what it has been all along. About
// anything else nobody is asked, nor about what the buffer has cut.
func TestSuperframes(t *testing.T) {
	for _, x := range []struct {
		name       string
		m          arrival
		asked, yes bool
		frames     int
		drop       frame.Reason
	}{
		{"datagram", arrival{data: pattern(100)}, false, true, 1, 0},
		{"long", arrival{data: pattern(60000)}, true, true, 1, 0},
		{"too long", arrival{data: pattern(60000)}, true, false, 1, frame.TooBig},
		{"cut", arrival{data: pattern(60000), trunc: true}, false, true, 1, frame.TooBig},
		{"run", arrival{data: pattern(300), seg: 100}, true, false, 3, 0},
		{"not a run", arrival{data: pattern(300), seg: 100}, true, true, 1, 0},
		{"cut run", arrival{data: pattern(300), seg: 100, trunc: true}, false, true, 3, 0},
	} {
		for _, taken := range []int{0, frame.MaxBatch - 1, frame.MaxBatch} { // of the batch
			r := newReader(&base{cfg: UDPConfig{MaxDatagram: 2048}}, nil)
			asked := 0
			f := func(p []byte) bool {
				if asked++; !bytes.Equal(p, x.m.data) {
					t.Errorf("%s: asked about %d bytes", x.name, len(p))
				}
				return x.yes
			}
			r.u.superframes.Store(&f)
			r.N = 1
			x.m.put(r, 0)
			b := frame.NewBatch(nil)
			for range taken {
				b.Borrow(nil, 0, 0)
			}
			r.deliver(b)
			fs := b.Frames[taken:]
			if r.At < r.N {
				if len(fs) != 0 || taken == 0 {
					t.Fatalf("%s: %d frames, and some left", x.name, len(fs))
				}
				b.Reset()
				r.deliver(b)
				fs = b.Frames
			}
			if len(fs) != x.frames || (asked > 0) != x.asked || r.At != r.N {
				t.Fatalf("%s: %d frames, asked %d times", x.name, len(fs), asked)
			}
			want := frame.GSO{}
			if x.yes && x.asked && x.m.seg > 0 {
				want = frame.GSO{Type: frame.GSOUDP, Size: uint16(x.m.seg)}
			}
			if f := &fs[0]; f.Drop != x.drop || f.GSO != want || f.Headroom() != frame.Headroom || x.frames == 1 && x.drop == 0 && !bytes.Equal(f.Bytes(), x.m.data) {
				t.Errorf("%s: %v %+v, %d bytes", x.name, f.Drop, f.GSO, f.Len())
			}
			if n := r.Rx.Truncated.Load(); n != 0 && x.drop == 0 && !x.m.trunc {
				t.Errorf("%s: %d counted as cut", x.name, n)
			}
		}
	}
}

// The longest datagram there is comes through a socket whole, whatever the MTU of the interface.
func TestUDPReceivesLongest(t *testing.T) {
	for _, local := range []string{"127.0.0.1:0", "[::1]:0"} {
		a, b := listen(t, local, nil), listen(t, local, &UDPConfig{MaxDatagram: 1000})
		n := 65507
		if strings.HasPrefix(local, "[") {
			n = 65536 - 48 // nobody makes fragments
		}
		b.Superframes(func(p []byte) bool { return p[0] == 'x' })
		e := endpoint(t, b.LocalAddr())
		send(t, a, to(strings.Repeat("x", n), 0, e), to(strings.Repeat("y", n), 0, e))
		rs := receive(t, b, 2)
		if rs[0].Drop != 0 || len(rs[0].Payload) != n || rs[1].Drop != frame.TooBig || len(rs[1].Payload) != 1000 {
			t.Errorf("%s: %v, %d bytes; %v, %d bytes", local, rs[0].Drop, len(rs[0].Payload), rs[1].Drop, len(rs[1].Payload))
		}
		if st := b.Stats(); st.RxTruncated != 1 || st.RxDatagrams != 2 {
			t.Errorf("%s: %+v", local, st)
		}
	}
}
