package arp

import (
	"testing"
	"unsafe"
)

// A row is as long as a cache line where pointers have 64 bits: every message is a look at one.
func TestRowSize(t *testing.T) {
	if n := unsafe.Sizeof(row{}); n != 64 && unsafe.Sizeof(uintptr(0)) == 8 {
		t.Errorf("%d bytes", n)
	}
}
