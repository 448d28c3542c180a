package bgp

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A reflector says more routes than one of ours takes. When half of them are withdrawn, those left are all there: it has asked for them.
func TestReliefByReflector(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, h *netns.Host){"gobgpd": startGoBGP, "FRR": reflectFRR} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const all, limit = 60, 20
			n := netns.New(t)
			sw, rr := n.Switch("sw"), n.Host("rr")
			n.Plug(rr, theirsAddr+"/24", sw)
			begin(t, rr)
			var bs [2]*BGP
			var hs [2]*heard
			for i, addr := range []string{oursAddr, "192.0.2.3"} {
				h := n.Host(fmt.Sprint("h", i))
				n.Plug(h, addr+"/24", sw)
				h.Ready()
				c := confOf(h, 65000)
				c.RouterID, c.Listen = netip.MustParseAddr(addr), nil
				c.Peers[0].Hold = DefaultHold
				if i == 1 {
					c.Peers[0].MaxRoutes = limit
				}
				bs[i], hs[i], _ = start(t, c)
			}
			for _, r := range many(all) {
				r.NextHop = ip(oursAddr)
				bs[0].Advertise(r)
			}
			rr.Until("the limit", func() bool { return hs[1].count() == limit && bs[1].Status()[0].Missing >= all-limit })
			keep := map[int]bool{}
			peer := netip.MustParseAddr(theirsAddr)
			for i, r := range many(all) { // those that were left out
				if len(keep) < limit-5 && hs[1].get(peer, r.Key).Kind == 0 {
					keep[i] = true
				}
			}
			for i, r := range many(all) {
				if !keep[i] {
					bs[0].Withdraw(r.Key)
				}
			}
			rr.Until("what was left out", func() bool {
				for i, r := range many(all) {
					if keep[i] != (hs[1].get(peer, r.Key).Kind != 0) {
						return false
					}
				}
				return bs[1].Status()[0].Missing == 0
			})
			if c, err := hs[1].counts(); c.ups != 1 || c.downs != 0 {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
}
