//go:build !race

package port

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Segments that are joined, read as a superframe, written as one, and cut: nothing is
// allocated on any of these ways.
func TestDeviceSuperframesAllocateNothing(t *testing.T) {
	const n = 44
	segments := tcpSegments(t, n, 1400)
	for _, c := range []struct {
		tag       uint32
		noOffload bool
	}{{0, false}, {5, false}, {0, true}, {5, true}} {
		x, y := bridged(t, nil)
		b := frame.NewBatch(new(frame.Arenas))
		o := outs(segments...)
		for i := range o {
			o[i].Tag = c.tag
		}
		w, back := x.Writer(0), y.Writer(0)
		rx, ry := x.Readers()[0], y.Readers()[0]
		if c.noOffload {
			y.whole = false
		}
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
			want := 1
			if c.noOffload {
				want = n
			}
			for got := 0; got < want; got += len(b.Frames) {
				if err := rx.Read(b); err != nil {
					t.Fatal(err)
				}
			}
		}); got != 0 {
			t.Errorf("%+v: %v allocations", c, got)
		}
	}
}

func TestPlainSuperframesAllocateNothing(t *testing.T) {
	p := NewPipe(nil)
	defer p.Close()
	o := outs(nil, nil)
	o[0].F, o[1].F = super(t, tcpSegments(t, 44, 1400)...), super(t, tcpSegments(t, 44, 1400)...)
	o[1].Tag = 7
	w, b := p.Writer(0), frame.NewBatch(nil)
	if got := testing.AllocsPerRun(100, func() {
		if err := w.Write(o); err != nil || o[0].Drop != 0 || o[1].Drop != 0 {
			t.Fatal(err, o[0].Drop, o[1].Drop)
		}
		for got := 0; got < 88; got += len(b.Frames) {
			p.out.Fill(b, nil)
		}
	}); got != 0 {
		t.Errorf("pipe: %v allocations", got)
	}
	s := &script{closed: make(chan struct{}), write: func(p []byte) (int, error) { return len(p), nil }}
	r := FromReadWriteCloser(s, nil)
	defer r.Close()
	w = r.Writer(0)
	if got := testing.AllocsPerRun(100, func() { w.Write(o) }); got != 0 || o[1].Drop != 0 {
		t.Errorf("rwc: %v allocations, %v", got, o[1].Drop)
	}
}

// A device without a virtio header gets every superframe cut.
func TestDeviceWithoutOffloadsAllocatesNothing(t *testing.T) {
	x, y := bridged(t, &DeviceConfig{NoOffload: true})
	o := outs(ethernet(60, 0), nil, nil, ethernet(1000, 1))
	o[1].F, o[2].F = super(t, tcpSegments(t, 44, 1400)...), super(t, tcpSegments(t, 2, 100)...)
	o[0].Tag, o[2].Tag = 9, 10
	w, r, b := x.Writer(0), y.Readers()[0], frame.NewBatch(new(frame.Arenas))
	if n := testing.AllocsPerRun(100, func() {
		if err := w.Write(o); err != nil || o[1].Drop != 0 || o[2].Drop != 0 {
			t.Fatal(err, o[1].Drop, o[2].Drop)
		}
		for got := 0; got < 48; got += len(b.Frames) {
			if err := r.Read(b); err != nil {
				t.Fatal(err)
			}
			for i := range b.Frames {
				if f := &b.Frames[i]; f.GSO != (frame.GSO{}) || f.Len() > 1454 {
					t.Fatalf("a frame of %d bytes, %+v", f.Len(), f.GSO)
				}
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
