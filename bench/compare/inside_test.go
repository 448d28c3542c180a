package main

import (
	"testing"
)

func TestPayload(t *testing.T) {
	for size, want := range map[string]int{"8": 8, "1400": 1400, "65507": 65507} {
		if n, err := payload(size); n != want || err != nil {
			t.Errorf("%s: %d, %v", size, n, err)
		}
	}
	for _, size := range []string{"", "x", "7", "-1", "65508"} {
		if _, err := payload(size); err == nil {
			t.Errorf("%q is a size", size)
		}
	}
}

// What is no command of the inside is left to the flags.
func TestInsideOthers(t *testing.T) {
	for _, args := range [][]string{nil, {"-case", "rr"}, {"sink"}, {"blast", "a", "b"}, {"echo", "a", "b"}, {"talk", "a"}, {"hear"}} {
		if inside(args) {
			t.Errorf("%q was taken", args)
		}
	}
}
