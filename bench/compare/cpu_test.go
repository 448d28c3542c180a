package main

import (
	"math"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

func TestBusy(t *testing.T) {
	got, err := busy("cpu  100 20 300 99999 888 4 5 6 7 8\ncpu0 1 2 3\n")
	if want := 4.29; err != nil || got < want-1e-9 || got > want+1e-9 {
		t.Errorf("%v, %v, want %v s", got, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu 1 2 x 4 5 6 7"} {
		if got, err := busy(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

// The name of a program may look like the fields behind it.
func TestSpent(t *testing.T) {
	got, err := spent("42 (p2p) S 7) R 1 42 42 0 -1 4194304 11 12 13 14 250 150 16 17 20 0\n")
	if want := 4.0; err != nil || got != want {
		t.Errorf("%v, %v, want %v s", got, err, want)
	}
	for _, bad := range []string{"", "42 (p2p) S 1", "42 (p2p) S 1 2 3 4 5 6 7 8 9 10 x y"} {
		if got, err := spent(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestPer(t *testing.T) {
	c := cpu{all: 3, own: 1}
	if all, own := (&lab{}).per(c, 2); all != 1.5 || !math.IsNaN(own) {
		t.Errorf("without a process: %v, %v", all, own)
	}
	if all, own := (&lab{tunnels: make([]*netns.Process, 2)}).per(c, 2); all != 1.5 || own != 0.5 {
		t.Errorf("with processes: %v, %v", all, own)
	}
}
