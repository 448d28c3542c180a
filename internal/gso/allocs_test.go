//go:build !race

package gso

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

func TestAllocs(t *testing.T) {
	for name, k := range packets(50000) {
		f, plain := k.super(1448), k.super(0xffff)
		told := f.GSO
		Check(plain)
		prefix := make([]byte, 50)
		var c Cutter
		var parts [][]byte
		if n := testing.AllocsPerRun(100, func() {
			c.Reset()
			f.GSO = told
			if Check(f) != frame.NotDropped {
				t.Fatal("refused")
			}
			parts, _ = c.Cut(parts[:0], prefix, f)
			parts, _ = c.Cut(parts, prefix, f)
			parts, _ = c.Cut(parts, prefix, plain)
		}); n != 0 {
			t.Errorf("%s: Check and Cut: %v allocations", name, n)
		}
		if len(parts) != 2*(35+35+1) {
			t.Errorf("%s: %d pieces", name, len(parts))
		}
		out := stream(k, 1448)
		j := Joiner{UDP: true}
		if n := testing.AllocsPerRun(100, func() {
			if n, _, _ := j.Join(out); n != len(out) {
				t.Fatal(n)
			}
			if n, _, _ := j.Join(out[len(out)-1:]); n != 1 {
				t.Fatal(n)
			}
		}); n != 0 {
			t.Errorf("%s: Join: %v allocations", name, n)
		}
	}
}

func TestReceivedAllocatesNothing(t *testing.T) {
	for name, k := range received(5000) {
		f := k.unfinished()
		if n := testing.AllocsPerRun(100, func() {
			f.GSO = frame.GSO{}
			if !Pending(f.Bytes(), f.Kind) || !Superframe(f.Bytes(), f.Kind) {
				t.Fatal("not pending")
			}
			if Received(f, 1500); f.GSO.Size == 0 {
				t.Fatal("no superframe")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
