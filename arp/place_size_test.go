package arp

import (
	"testing"
	"unsafe"
)

// A row is a cache line: every message is a look at one.
func TestRowSize(t *testing.T) {
	if n := unsafe.Sizeof(row{}); n != 64 {
		t.Errorf("%d bytes", n)
	}
}
