package bgp

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// A peer says more routes than all may have; the others say theirs before and after.
func TestWorstRoutes(t *testing.T) {
	const limit, others = 10_000, 9
	run := func(attack bool) (kept int) {
		c := Config{AS: 1, RouterID: netip.MustParseAddr("192.0.2.1"), MaxRoutes: limit}
		for i := range others + 1 {
			c.Peers = append(c.Peers, Peer{Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)}), AS: 1})
		}
		b := check.Must(New(c))(t)
		b.h = newHeard()
		peers := *b.peers.Load()
		n := uint32(0)
		say := func(i, count int) {
			p := &intake{peer: peers[c.Peers[i].Addr]}
			for range count {
				n++
				p.learned(&route.Route{Key: route.Key{Kind: route.MACIP, Tag: n}})
			}
		}
		for i := range others {
			say(i, 250)
		}
		if attack {
			say(others, 3*limit)
		}
		for i := range others {
			say(i, 250)
		}
		sum := 0
		for i := range c.Peers {
			p := peers[c.Peers[i].Addr]
			if sum += len(p.known); i < others {
				kept += len(p.known)
			}
		}
		if sum > limit || attack && sum != limit {
			t.Errorf("%d routes, at most %d", sum, limit)
		}
		if attack && peers[c.Peers[others].Addr].left["limit-of-all"] != uint64(3*limit-(limit-kept)) {
			t.Errorf("%v", peers[c.Peers[others].Addr].left)
		}
		for _, p := range peers { // half of its routes one by one, the rest at once
			in := &intake{peer: p}
			for k := uint32(1); k <= n; k += 2 {
				in.withdrawn(&route.Key{Kind: route.MACIP, Tag: k})
			}
			b.mu.Lock()
			p.gone(nil)
			b.mu.Unlock()
		}
		if b.taken != b.share*len(c.Peers) {
			t.Errorf("%d are taken at the end, want %d", b.taken, b.share*len(c.Peers))
		}
		return kept
	}
	alone := run(false)
	worst.Kept(t, "routes of EVPN peers", alone, run(true))
}
