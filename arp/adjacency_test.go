package arp

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// While rows come, change and go, a reader finds under an address what once was there, and
// never what was another's; rows that stay are always found.
func TestHopsConcurrently(t *testing.T) {
	var h adjacencies
	h.init()
	const n = 300
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = h.key(ip6(byte(i)))
		if i > 255 {
			keys[i] = h.key(ip4(byte(i)))
		}
		if i%3 == 0 {
			h.set(keys[i], newAdjacency(frame.MAC{2, byte(i >> 8), byte(i)}, true))
		}
	}
	var over atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !over.Load() {
				for i, k := range keys {
					x := h.find(k)
					switch m := frame.MACFrom(x.MAC()); {
					case x != 0 && (m[1] != byte(i>>8) || m[2] != byte(i)):
						t.Errorf("%d: %v", i, x)
						return
					case i%3 == 0 && !x.Remote():
						t.Errorf("%d is gone: %v", i, x)
						return
					}
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for k := range 200_000 {
		i := rng.IntN(n)
		switch m := (frame.MAC{2, byte(i >> 8), byte(i), byte(k)}); {
		case i%3 == 0:
			h.set(keys[i], newAdjacency(m, true))
		case k%2 == 0:
			h.set(keys[i], newAdjacency(m, k%4 == 0))
		default:
			h.delete(keys[i])
		}
	}
	over.Store(true)
	wg.Wait()
	if size := len(*h.arr.Load()); size > 1024 {
		t.Errorf("%d slots for %d rows", size, n)
	}
}

// Rows that come and go leave no slots behind, whatever their addresses.
func TestHopsStaySmall(t *testing.T) {
	var h adjacencies
	h.init()
	for i := range 100_000 {
		k := h.key(ip6(byte(i))) + uint64(i)<<8 | 1<<63
		h.set(k, newAdjacency(mac(1), false))
		if x := h.find(k); x != newAdjacency(mac(1), false) {
			t.Fatalf("%d: %v", i, x)
		}
		h.delete(k)
		if h.find(k) != 0 {
			t.Fatalf("%d is still there", i)
		}
	}
	if size := len(*h.arr.Load()); size > 2*minSlots || h.live != 0 {
		t.Errorf("%d slots, %d rows", size, h.live)
	}
}
