package soak

import (
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A site of the library is found by the number of its objects, whoever called it.
func TestHeapFindsSites(t *testing.T) {
	before := takeHeap()
	var keep []*frame.Batch
	for range 300 {
		b := frame.NewBatch(nil)
		b.New(64)
		keep = append(keep, b)
		if len(keep) == 10 {
			keep = keep[:0]
		}
	}
	got := takeHeap().since(before)
	find := func(name string) (n int64) {
		for _, g := range got {
			if g.ours && strings.HasPrefix(g.name, name) {
				n += g.objects
			}
		}
		return n
	}
	// Two for each; a collection that begins there has the runtime allocate a few.
	if n := find("frame.newArena"); n < 600 || n > 650 {
		t.Errorf("frame.newArena: %d objects of 300 arenas", n)
	}
	if g := guilty(got, 299*perFrame, 0); len(g) == 0 {
		t.Errorf("nothing is in proportion to the frames: %+v", got)
	}
	if g := guilty(got, 1000*perFrame, 0); len(g) > 0 {
		t.Errorf("%+v is not in proportion to the frames", g)
	}
	arena := growth{site{name: "frame.newArena", ours: true}, 300}
	for _, c := range []struct {
		worker bool
		d      time.Duration
		want   int
	}{{false, 14 * time.Second, 1}, {false, 16 * time.Second, 0}, {true, 16 * time.Second, 1}} {
		if arena.worker = c.worker; len(guilty([]growth{arena}, 0, c.d)) != c.want {
			t.Errorf("300 objects in %v, in a worker %t: want %d guilty", c.d, c.worker, c.want)
		}
	}
}

func TestLibrary(t *testing.T) {
	for name, want := range map[string]bool{
		module + "switch.(*worker).flush":                true,
		module + "internal/gso.Cut":                      true,
		module + "internal/lab/netns.(*Host).IP":         false,
		module + "bench/soak.newEnd":                     false,
		"testing.tRunner":                                false,
		"github.com/vxswitch/vxswitchother.(*worker).go": false,
	} {
		if library(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}
