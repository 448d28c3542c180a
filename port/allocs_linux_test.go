//go:build !race

package port

import (
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Frames, tagged ones, and segments that are joined, read as a superframe and written back as one:
// nothing is allocated on any of these ways.
func TestDevicesAllocateNothing(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, noOffload bool) (x, y Port){
		"TAP": func(t *testing.T, noOffload bool) (x, y Port) {
			return port2(bridged(t, &DeviceConfig{NoOffload: noOffload}))
		},
		"Packet": func(t *testing.T, noOffload bool) (x, y Port) {
			h := netns.New(t).Host("h")
			h.Quiet()
			h.IP("link", "add", "veth0", "type", "veth", "peer", "veth1")
			h.Up("veth0")
			h.Up("veth1")
			a, b := openPacket(t, h, "veth0", nil), openPacket(t, h, "veth1", &PacketConfig{NoOffload: noOffload})
			a.whole = !noOffload
			return a, b
		},
	} {
		for _, noOffload := range []bool{false, true} {
			for _, tag := range []uint32{0, 5} {
				t.Run(fmt.Sprint(name, noOffload, tag), func(t *testing.T) {
					x, y := open(t, noOffload)
					o := fake.Outs(append(tcpSegments(t, 44, 1400), fake.Ethernet(60, 0), fake.Ethernet(1000, 1))...)
					want := len(o)
					if !noOffload {
						want = 3 // the segments are one
					}
					for i := range o {
						o[i].Tag = tag
					}
					w, back, rx, ry := x.Writer(0), y.Writer(0), x.Readers()[0], y.Readers()[0]
					b, answer := frame.NewBatch(new(frame.Arenas)), make([]frame.Out, 1)
					read := func(r frame.Reader) int {
						if err := r.Read(b); err != nil || b.Frames[0].Drop != 0 {
							t.Fatal(err, b.Frames[0].Drop)
						}
						return len(b.Frames)
					}
					if n := testing.AllocsPerRun(100, func() {
						if err := w.Write(o); err != nil || o[1].Drop != 0 || o[45].Drop != 0 {
							t.Fatal(err, o[1].Drop, o[45].Drop)
						}
						got := read(ry)
						if f := &b.Frames[0]; (f.GSO.Type == frame.GSOTCP4 && f.GSO.Size == 1400) == noOffload {
							t.Fatalf("a frame of %d bytes, %+v", f.Len(), f.GSO)
						}
						answer[0] = frame.Out{F: &b.Frames[0]}
						if back.Write(answer); answer[0].Drop != 0 {
							t.Fatal(answer[0].Drop)
						}
						for got < want {
							got += read(ry)
						}
						read(rx)
					}); n != 0 {
						t.Errorf("%v allocations", n)
					}
				})
			}
		}
	}
}

func port2(x, y *Device) (Port, Port) { return x, y }
