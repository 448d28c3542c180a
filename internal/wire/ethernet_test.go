package wire

import (
	"bytes"
	"slices"
	"testing"
)

func TestEthernet(t *testing.T) {
	plain := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0, 0x45}
	tag := func(b []byte, typ ...byte) []byte {
		return slices.Concat(b[:12], typ, []byte{0, 7}, b[12:])
	}
	single := tag(plain, 0x81, 0)
	double := tag(single, 0x88, 0xa8)
	for _, c := range []struct {
		name string
		b    []byte
		typ  uint16
		at   int
	}{
		{"plain", plain, TypeIPv4, 14},
		{"no payload", plain[:14], TypeIPv4, 14},
		{"tag", single, TypeIPv4, 18},
		{"two tags", double, TypeIPv4, 22},
		{"three tags", tag(double, 0x81, 0), TypeVLAN, 22},
		{"tag cut short", single[:17], TypeVLAN, 14},
		{"second tag cut short", double[:21], TypeVLAN, 18},
	} {
		e, ok := ParseEthernet(c.b)
		if !ok {
			t.Errorf("%s: refused", c.name)
			continue
		}
		if typ, at := e.Network(); typ != c.typ || at != c.at {
			t.Errorf("%s: %#x at %d, want %#x at %d", c.name, typ, at, c.typ, c.at)
		}
	}
	if _, ok := ParseEthernet(plain[:13]); ok {
		t.Error("13 bytes are a frame")
	}
	e, _ := ParseEthernet(bytes.Clone(plain))
	dst, src := e.Dst(), e.Src()
	if e.Turn(); e.Dst() != src || e.Src() != dst || dst != [6]byte{1, 2, 3, 4, 5, 6} || !bytes.Equal(e[12:], plain[12:]) {
		t.Errorf("% x", e)
	}
}
