//go:build !race

package port

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// Segments that are joined, read as a superframe and written as one: nothing is
// allocated on any of these ways.
func TestDeviceSuperframesAllocateNothing(t *testing.T) {
	const n = 44
	segments := tcpSegments(t, n, 1400)
	for _, tag := range []uint32{0, 5} {
		x, y := bridged(t, nil)
		b := frame.NewBatch(new(frame.Arenas))
		o := fake.Outs(segments...)
		for i := range o {
			o[i].Tag = tag
		}
		w, back := x.Writer(0), y.Writer(0)
		rx, ry := x.Readers()[0], y.Readers()[0]
		answer := make([]frame.Out, 1)
		if got := testing.AllocsPerRun(100, func() {
			w.Write(o)
			if err := ry.Read(b); err != nil {
				t.Fatal(err)
			}
			if f := &b.Frames[0]; len(b.Frames) != 1 || f.Drop != 0 || f.GSO.Type != frame.GSOTCP4 || f.GSO.Size != 1400 {
				t.Fatalf("%d frames, the first of %d bytes, %+v, %v", len(b.Frames), f.Len(), f.GSO, f.Drop)
			}
			answer[0] = frame.Out{F: &b.Frames[0]}
			back.Write(answer)
			if answer[0].Drop != 0 {
				t.Fatal(answer[0].Drop)
			}
			if err := rx.Read(b); err != nil {
				t.Fatal(err)
			}
		}); got != 0 {
			t.Errorf("tag %d: %v allocations", tag, got)
		}
	}
}

// A device without a virtio header.
func TestDeviceWithoutOffloadsAllocatesNothing(t *testing.T) {
	x, y := bridged(t, &DeviceConfig{NoOffload: true})
	o := fake.Outs(append(tcpSegments(t, 44, 1400), fake.Ethernet(60, 0), fake.Ethernet(1000, 1))...)
	o[0].Tag, o[45].Tag = 9, 10
	w, r, b := x.Writer(0), y.Readers()[0], frame.NewBatch(new(frame.Arenas))
	if n := testing.AllocsPerRun(100, func() {
		if err := w.Write(o); err != nil || o[1].Drop != 0 || o[2].Drop != 0 {
			t.Fatal(err, o[1].Drop, o[2].Drop)
		}
		for got := 0; got < len(o); got += len(b.Frames) {
			if err := r.Read(b); err != nil {
				t.Fatal(err)
			}
			for i := range b.Frames {
				if f := &b.Frames[i]; f.GSO != (frame.GSO{}) || f.Len() > 1458 {
					t.Fatalf("a frame of %d bytes, %+v", f.Len(), f.GSO)
				}
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
