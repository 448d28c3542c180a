package offload

import (
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// TestWorstFlows: a port offers new pairs, or new tuples of one pair, all the time; those of another are carried, and come back after
// a change.
func TestWorstFlows(t *testing.T) {
	run := func(attack, tuples bool) (got int) {
		netns.RequireRoot(t)
		h := rigHost(t)
		r := newRigWith(t, h, &Config{Flows: 256})
		check.OK(t, r.vsi.Configure(vswitch.VSIConfig{MaxMACs: 20000}))
		pair := func(from, to frame.Dest, src, dst int) vswitch.Pair {
			p := vswitch.Pair{From: from, Src: frame.MACFrom(0x020000000000 + uint64(src)), Dst: frame.MACFrom(0x020000000000 + uint64(dst))}
			check.OK(t, r.vsi.FDB().Set(p.Src, from, fdb.Static))
			check.OK(t, r.vsi.FDB().Set(p.Dst, to, fdb.Static))
			return p
		}
		if tuples {
			check.OK(t, r.at[0].Configure(vswitch.AttachConfig{Slots: r.filtered()}))
		}
		const pairs, seconds, attempts = 10, 600, 20
		var good []vswitch.Pair
		for i := range pairs {
			good = append(good, pair(r.dests[1], r.dests[2], 10+i, 30+i))
		}
		for second := range seconds {
			clear(r.o.refused)
			clear(r.o.asked)
			for i := range attempts {
				if attack {
					n := 1000 + second*attempts + i
					p := pair(r.dests[0], r.dests[2], n%5000+100, n%7000+6000)
					if tuples {
						p = pair(r.dests[0], r.dests[2], 100, 6000)
						p.Tuple = tupleTo(9)
						p.Tuple.SrcPort = uint16(n)
					}
					r.o.offer(p)
				}
				if i < pairs {
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
	for _, tuples := range []bool{false, true} {
		worst.Kept(t, "flows in the kernel", run(false, tuples), run(true, tuples))
	}
}
