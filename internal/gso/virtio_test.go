package gso

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

func TestVirtioBackAndForth(t *testing.T) {
	k := packet{payload: pattern(40 * 1400)}
	f := k.super(1400)
	want := f.GSO
	h := Virtio{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	h.Put(k.gso(1400))
	if h[2]+h[3] != 54 {
		t.Errorf("header % x", h)
	}
	f.GSO = frame.GSO{}
	if r := h.Apply(f, f.Headroom()); r != 0 || f.GSO != want {
		t.Errorf("%v, %+v, want %+v", r, f.GSO, want)
	}
	h.Put(frame.GSO{Flags: frame.NeedsCsum, CsumStart: 34, CsumOffset: 16})
	if h[2]+h[3] != 52 {
		t.Errorf("header % x", h)
	}
	if h.Put(frame.GSO{}); h != (Virtio{}) {
		t.Errorf("header % x", h)
	}
}

func FuzzVirtio(f *testing.F) {
	s := packet{payload: pattern(300)}.super(100)
	f.Add(make([]byte, VirtioLen), s.Bytes(), uint8(0))
	f.Add([]byte{1, 1, 54, 0, 100, 0, 34, 0, 16, 0}, s.Bytes(), uint8(0))
	f.Fuzz(func(t *testing.T, head, packet []byte, kind uint8) {
		if len(head) < VirtioLen {
			return
		}
		x := frame.Make(packet)
		x.Kind = frame.Kind(kind % 3)
		if x.Drop = (*Virtio)(head).Apply(&x, x.Headroom()); x.Drop != frame.NotDropped {
			return
		}
		// What is let in can be sent to every port.
		var c Cutter
		if parts, _ := c.Cut(nil, nil, &x); len(parts) == 0 {
			t.Errorf("%+v: cannot be cut", x.GSO)
		}
	})
}
