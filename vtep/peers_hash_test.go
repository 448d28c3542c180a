package vtep

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Peers that strangers have chosen are found as soon as others: 2^64 divided by the golden ratio
// as interface identifier once made one chain of all prefixes.
func TestChosenPeers(t *testing.T) {
	const peers = 4096
	lookups := func(identifier func() uint64) time.Duration {
		v := newVTEP(t, &Config{MaxPeers: peers}, fake6())
		check.OK(t, v.Control().Open(vni))
		keys := make([]hostKey, peers)
		for i := range keys {
			var a [16]byte
			binary.BigEndian.PutUint64(a[:], 0x20010db8<<32|uint64(i))
			binary.BigEndian.PutUint64(a[8:], identifier())
			e := endpoint(t, netip.AddrPortFrom(netip.AddrFrom16(a), 0))
			check.Need(t, v.learn(e) != nil, "not learned")
			keys[i] = hostKey(e)
		}
		best := time.Hour
		for range 20 {
			start := time.Now()
			for _, k := range keys[peers-256:] {
				if _, ok := v.byHost.Load(k); !ok {
					t.Fatal("not found")
				}
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	usual := lookups(rand.Uint64)
	for _, id := range []uint64{0x9e3779b97f4a7c15, 1, 0} {
		if chosen := lookups(func() uint64 { return id }); chosen > 10*usual {
			t.Errorf("identifier %x: 256 look-ups take %v, of random ones %v", id, chosen, usual)
		}
	}
}
