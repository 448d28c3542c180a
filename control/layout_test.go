package control

import (
	"testing"
	"unsafe"
)

// A node of a large network has as many of these as there are VTEPs or hosts. The sizes are those of the runtime's size classes
// or just below: a byte more is 16 to 32.
func TestLayout(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("for 64 bits")
	}
	for name, x := range map[string]struct{ is, most uintptr }{
		"record":  {unsafe.Sizeof(record{}), 64},
		"place":   {unsafe.Sizeof(place{}), 144},
		"peer":    {unsafe.Sizeof(peer{}), 112},
		"peerKey": {unsafe.Sizeof(peerKey{}), 56},
	} {
		if x.is > x.most {
			t.Errorf("a %s has %d bytes, want at most %d", name, x.is, x.most)
		}
	}
}
