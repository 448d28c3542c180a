package port

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
)

func TestVirtioHeaderBackAndForth(t *testing.T) {
	f := super(t, tcpSegments(t, 40, 1400)...)
	want := f.GSO
	h := make(virtioHeader, 12)
	for i := range h {
		h[i] = 0xff
	}
	rel := want
	rel.CsumStart -= frame.Headroom
	rel.DataStart -= frame.Headroom
	h.put(rel)
	if h[2]+h[3] != 54 || h[10] != 0 || h[11] != 0 {
		t.Errorf("header % x", []byte(h))
	}
	f.GSO = frame.GSO{}
	if r := h.apply(f, f.Headroom()); r != 0 || f.GSO != want {
		t.Errorf("%v, %+v, want %+v", r, f.GSO, want)
	}
	h.put(frame.GSO{Flags: frame.NeedsCsum, CsumStart: 34, CsumOffset: 16})
	if h[2]+h[3] != 52 {
		t.Errorf("header % x", []byte(h))
	}
	h.put(frame.GSO{})
	for _, b := range h {
		if b != 0 {
			t.Fatalf("header % x", []byte(h))
		}
	}
}

func TestVirtioHeaderLies(t *testing.T) {
	f := super(t, tcpSegments(t, 3, 1400)...)
	good := f.GSO
	good.CsumStart -= frame.Headroom
	good.DataStart -= frame.Headroom
	for what, lie := range map[string]func(h virtioHeader){
		"type":        func(h virtioHeader) { h[1] = byte(frame.GSOTCP6) },
		"no type":     func(h virtioHeader) { h[1] = 77 },
		"size":        func(h virtioHeader) { h[4], h[5] = 0, 0 },
		"start":       func(h virtioHeader) { h[6]++ },
		"far":         func(h virtioHeader) { h[6], h[7] = 0xff, 0xff },
		"offset":      func(h virtioHeader) { h[8]++ },
		"no checksum": func(h virtioHeader) { h[0] = 0 },
	} {
		h := make(virtioHeader, virtioLen)
		h.put(good)
		lie(h)
		f.GSO = frame.GSO{}
		if r := h.apply(f, f.Headroom()); r != frame.BadHeader || f.GSO != (frame.GSO{}) {
			t.Errorf("%s: %v, %+v", what, r, f.GSO)
		}
	}
	// What says nothing of interest: the kernel has verified the checksum.
	h := make(virtioHeader, virtioLen)
	h[0] = 2
	if r := h.apply(f, f.Headroom()); r != 0 || f.GSO != (frame.GSO{}) {
		t.Errorf("DATA_VALID: %v, %+v", r, f.GSO)
	}
}

func FuzzVirtioHeader(f *testing.F) {
	s := super(f, tcpSegments(f, 3, 100)...)
	f.Add(make([]byte, virtioLen), s.Bytes(), uint8(0))
	f.Add([]byte{1, 1, 54, 0, 100, 0, 34, 0, 16, 0}, s.Bytes(), uint8(0))
	f.Fuzz(func(t *testing.T, head, packet []byte, kind uint8) {
		if len(head) < virtioLen {
			return
		}
		x := frame.Make(packet)
		x.Kind = frame.Kind(kind % 3)
		if x.Drop = virtioHeader(head).apply(&x, x.Headroom()); x.Drop != frame.NotDropped {
			return
		}
		// What is let in can be sent to every port.
		var c gso.Cutter
		if parts, _ := c.Cut(nil, nil, &x); len(parts) == 0 {
			t.Errorf("%+v: cannot be cut", x.GSO)
		}
	})
}
