package datapath

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Whatever flows come and go, each that is there has its own path, equal ones are there once, and the table is never full.
func TestPaths(t *testing.T) {
	const flows = 8
	d := loadFor(t, flows)
	rnd := rand.New(rand.NewPCG(1, 2))
	key := func(slot int) OutKey { return OutKey{Ifindex: 1, Dst: macOf(slot), Src: macNear} }
	live := map[int]path{}
	for range 600 {
		slot := rnd.IntN(2 * flows)
		if _, ok := live[slot]; ok {
			check.OK(t, d.Delete(key(slot)))
			delete(live, slot)
		} else if len(live) < flows {
			o := outerTo(0, rnd.IntN(20))
			check.OK(t, d.Put(key(slot), &Flow{Slot: uint32(slot), Oif: 1, How: Neigh, Max: 1500, Outer: o}))
			live[slot] = o.path()
		}
		distinct := map[path]bool{}
		for slot, want := range live {
			pair, _ := key(slot).parts()
			var f [flowLen]byte
			var got path
			check.OK(t, d.objects.Out.Lookup(pair[:], f[:]))
			check.OK(t, d.objects.Paths.Lookup(binary.NativeEndian.Uint32(f[4:]), got[:]))
			check.Equal(t, "path", got, want)
			distinct[want] = true
		}
		if n := len(d.paths.known); n < len(distinct) || n > 2*flows {
			t.Fatalf("%d paths for %d flows with %d", n, len(live), len(distinct))
		}
	}
}
