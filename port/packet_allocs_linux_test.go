//go:build !race

package port

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Frames, tagged ones, and segments that are joined, read as a superframe and written as one:
// nothing is allocated on any of these ways.
func TestPacketAllocatesNothing(t *testing.T) {
	const n = 44
	for _, c := range []struct {
		tag       uint32
		noOffload bool
	}{{0, false}, {5, false}, {0, true}, {5, true}} {
		h := netns.New(t).Host("h")
		h.Quiet()
		h.IP("link", "add", "veth0", "type", "veth", "peer", "veth1")
		h.Up("veth0")
		h.Up("veth1")
		x, y := openPacket(t, h, "veth0", nil), openPacket(t, h, "veth1", &PacketConfig{NoOffload: c.noOffload})
		if c.noOffload {
			x.whole = false
		}
		o := fake.Outs(tcpSegments(t, n, 1400)...)
		for i := range o {
			o[i].Tag = c.tag
		}
		b := frame.NewBatch(new(frame.Arenas))
		w, back, rx, ry := x.Writer(0), y.Writer(0), x.Readers()[0], y.Readers()[0]
		answer := make([]frame.Out, 1)
		if got := testing.AllocsPerRun(100, func() {
			w.Write(o)
			want := 1
			if c.noOffload {
				want = n
			}
			for got := 0; got < want; got += len(b.Frames) {
				if err := ry.Read(b); err != nil {
					t.Fatal(err)
				}
				if f := &b.Frames[0]; f.Drop != 0 || (f.GSO.Type == frame.GSOTCP4) == c.noOffload {
					t.Fatalf("a frame of %d bytes, %+v, %v", f.Len(), f.GSO, f.Drop)
				}
			}
			answer[0] = frame.Out{F: &b.Frames[0]}
			back.Write(answer)
			if answer[0].Drop != 0 {
				t.Fatal(answer[0].Drop)
			}
			if err := rx.Read(b); err != nil || b.Frames[0].Drop != 0 {
				t.Fatal(err, b.Frames[0].Drop)
			}
		}); got != 0 {
			t.Errorf("%+v: %v allocations", c, got)
		}
	}
}
