package offload

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// TestWorstFlows: a port offers new pairs, new tuples of one pair, or new addresses that are routed, all the time; those of another are
// carried, and come back after a change.
func TestWorstFlows(t *testing.T) {
	const pairs, tuples, addresses = 0, 1, 2
	run := func(attack bool, of int) (got int) {
		netns.RequireRoot(t)
		h := rigHost(t)
		r := newRigWith(t, h, &Config{Flows: 256})
		check.OK(t, r.vsi.Configure(vswitch.VSIConfig{MaxMACs: 20000, Slots: r.vsi.Config().Slots}))
		pair := func(from, to frame.Dest, src, dst int) vswitch.Pair {
			p := vswitch.Pair{From: from, Src: frame.MACFrom(0x020000000000 + uint64(src)), Dst: frame.MACFrom(0x020000000000 + uint64(dst))}
			check.OK(t, r.vsi.FDB().Set(p.Src, from, fdb.Static))
			check.OK(t, r.vsi.FDB().Set(p.Dst, to, fdb.Static))
			return p
		}
		if of == tuples {
			check.OK(t, r.at[0].Configure(vswitch.AttachConfig{Slots: r.filtered()}))
		}
		const friends, seconds, attempts = 10, 600, 20
		r.route(0)
		check.OK(t, r.routes.gate[0].neighbours.Set(nextHops[0], pair(r.dests[0], r.dests[2], 100, 6000).Dst, arp.Static, 0))
		var good []vswitch.Pair
		for i := range friends {
			good = append(good, pair(r.dests[1], r.dests[2], 10+i, 30+i))
		}
		for second := range seconds {
			clear(r.o.refused)
			clear(r.o.asked)
			for i := range attempts {
				if attack {
					n := 1000 + second*attempts + i
					p := pair(r.dests[0], r.dests[2], n%5000+100, n%7000+6000)
					if of != pairs {
						p = pair(r.dests[0], r.dests[2], 100, 6000)
						p.Tuple = tupleTo(9)
						p.Tuple.SrcPort = uint16(n)
					}
					if of == addresses {
						p.Dst, p.Tuple.Src = gatewayMAC(1), netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)})
					}
					r.o.offer(p)
				}
				if i < friends {
					r.o.offer(good[i])
				}
			}
			if second%50 == 0 {
				r.sw.Flush() // voids everything
			}
			r.o.renew()
			h.Do(func() {
				for _, p := range good {
					if r.o.entries[p] != nil && r.carried(p) {
						got++
					}
				}
			})
		}
		if st := check.Must(r.o.Stats())(t); attack && st.Removed < 5000 {
			t.Errorf("%d flows gave way: no attack", st.Removed)
		}
		return got
	}
	for _, of := range []int{pairs, tuples, addresses} {
		worst.Kept(t, "flows in the kernel", run(false, of), run(true, of))
	}
}
