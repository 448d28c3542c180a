package bgp

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// A peer announces ten times as many routes as there may be, beside others that have announced some before, and announce more after it.
func TestWorstRoutes(t *testing.T) {
	const limit, others, each = 1 << 12, 8, 100
	run := func(attack bool) (has int) {
		c := settings()
		c.MaxRoutes = limit
		for i := range others + 1 {
			c.Peers = append(c.Peers, Peer{Addr: addr("10.0.0.10"), AS: uint32(i + 1)})
		}
		x := newTable(c)
		x.configure(c, gateway)
		n := uint32(0)
		from := func(peer byte, count int) {
			for range count {
				a := [4]byte{10, 66}
				binary.BigEndian.PutUint32(a[:], 10<<24|66<<16+n)
				n++
				x.learned(engine.Path{Source: engine.Source{Peer: netip.AddrFrom4([4]byte{10, 0, 0, peer})}, Prefix: netip.PrefixFrom(netip.AddrFrom4(a), 32), NextHop: addr("10.0.0.2")})
			}
		}
		for i := range others {
			from(byte(10+i), each/2)
		}
		if attack {
			from(99, 10*limit)
		}
		for i := range others {
			from(byte(10+i), each/2)
		}
		for peer, n := range x.peers {
			if peer != addr("10.0.0.99") {
				has += n[None]
			}
		}
		if x.n > limit {
			t.Errorf("%d paths", x.n)
		}
		if x.hungry() {
			t.Error("all are asked for again, with nothing gone")
		}
		x.down(addr("10.0.0.99"))
		if x.hungry() != attack {
			t.Errorf("asked again: %v, want %v", !attack, attack)
		}
		return has
	}
	worst.Kept(t, "routes of BGP peers", run(false), run(true))
}
