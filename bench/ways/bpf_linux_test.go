package main

import (
	"encoding/binary"
	"testing"
)

// The program has whole instructions, and the descriptor is where the loader looks for it.
func TestProgram(t *testing.T) {
	code := program(77)
	if len(code) != 6*8 {
		t.Fatalf("%d bytes", len(code))
	}
	if got := binary.NativeEndian.Uint32(code[8+4:]); code[8] != 0x18 || got != 77 {
		t.Errorf("instruction %x with the constant %d", code[8], got)
	}
	if code[5*8] != 0x95 {
		t.Errorf("the last is %x", code[5*8])
	}
}
