package bgp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/internal/lab/gobgp"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Two of ours behind a route reflector: routes arrive with the next hop, and the communities, of who said them.
func TestReflector(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, h *netns.Host){"gobgpd": startGoBGP, "FRR": reflectFRR} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := netns.New(t)
			sw, rr := n.Switch("sw"), n.Host("rr")
			n.Plug(rr, theirsAddr+"/24", sw)
			var bs [2]*BGP
			var hs [2]*heard
			begin(t, rr)
			for i, addr := range []string{oursAddr, "192.0.2.3"} {
				h := n.Host(fmt.Sprint("h", i))
				n.Plug(h, addr+"/24", sw)
				h.Ready()
				c := confOf(h, 65000)
				c.RouterID, c.Listen = netip.MustParseAddr(addr), nil // of two connections, FRR now and then ends the one that was kept
				c.Peers[0].Hold = DefaultHold
				bs[i], hs[i], _ = start(t, c)
			}
			all := toFRR()
			if name == "gobgpd" { // it takes a route with an EVPN community it does not know for a withdrawal
				for key, r := range all {
					if r.NumLabels == 2 {
						r.Communities = r.Communities[:32]
						all[key] = r
					}
				}
			}
			for _, r := range all {
				bs[0].Advertise(r)
			}
			peer := netip.MustParseAddr(theirsAddr)
			for key, r := range all {
				rr.Until("the other has "+key, func() bool { return hs[1].get(peer, r.Key).Key == r.Key })
				got := hs[1].get(peer, r.Key)
				got.Communities, r.Communities = sorted(got.Communities), sorted(r.Communities) // as FRR does
				if got != r {
					t.Errorf("%s: %+v\nwant %+v", key, got, r)
				}
			}
			for _, r := range all {
				bs[0].Withdraw(r.Key)
			}
			rr.Until("withdrawals", func() bool { return hs[1].count() == 0 })
			for i, h := range hs {
				if c, err := h.counts(); c.ups != 1 || c.downs != 0 {
					t.Errorf("%d: %+v, %v", i, c, err)
				}
			}
		})
	}
}

func sorted(c route.Communities) route.Communities {
	var all []string
	for i := range c.Len() {
		b := c.At(i)
		all = append(all, string(b[:]))
	}
	slices.Sort(all)
	return route.Communities(strings.Join(all, ""))
}

// startGoBGP starts gobgpd as the reflector.
func startGoBGP(t *testing.T, h *netns.Host) {
	gobgp.Reflect(t, h, 65000, theirsAddr, oursAddr, "192.0.2.3")
}

// reflectFRR starts FRR as the reflector.
func reflectFRR(t *testing.T, h *netns.Host) {
	startFRR(t, h, "", fmt.Sprintf(`router bgp 65000
 bgp router-id %s
 no bgp default ipv4-unicast
 neighbor %s remote-as 65000
 neighbor 192.0.2.3 remote-as 65000
 address-family l2vpn evpn
  neighbor %[2]s activate
  neighbor %[2]s route-reflector-client
  neighbor 192.0.2.3 activate
  neighbor 192.0.2.3 route-reflector-client
`, theirsAddr, oursAddr))
}
