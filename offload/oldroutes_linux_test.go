package offload

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// TestOldRoutes is TestOldDecisions for frames that a gateway of the segment routes to macB, whose neighbour is next; nextC is at macC.
func TestOldRoutes(t *testing.T) {
	var (
		macC        = frame.MAC{2, 0, 0, 0, 0, 0xc}
		next, nextC = netip.MustParseAddr("10.9.0.2"), netip.MustParseAddr("10.9.0.3")
		to          = netip.MustParsePrefix("10.0.0.2/32")
		near        = frame.NewDest(1, 0)
	)
	for _, w := range []struct{ from, to string }{{"tapa", "tapb"}, {"tapa", "peer"}, {"peer", "tapb"}} {
		t.Run(w.from+" to "+w.to, func(t *testing.T) {
			t.Parallel()
			x := newOld(t, w.from, w.to)
			x.filtered, x.dst = true, gatewayMAC(1)
			vrf := newVRF(t)
			var g *irb
			hop := func(ip netip.Addr) l3.NextHop { return l3.NextHop{Interface: g.Interface, IP: ip} }
			route := func(via ...l3.NextHop) { check.OK(t, vrf.Add(l3.Route{Prefix: to, Via: via})) }
			known := func() {
				check.OK(t, g.neighbours.Set(next, macB, arp.Static, 0))
				check.OK(t, g.neighbours.Set(nextC, macC, arp.Static, 0))
			}
			open := func(*old) {
				g = gateway(t, vrf, x.vsi, x.dst, "10.9.0.1/24")
				known()
				route(hop(next))
			}
			open(x)
			slots := x.vsi.Config().Slots
			set := func(s vswitch.Slots) {
				cfg := x.vsi.Config()
				cfg.Slots = s
				check.OK(t, x.vsi.Configure(cfg))
			}
			check.OK(t, x.table.Set(macC, x.dest("tapc"), fdb.Static))
			again := func(*old) { known(); route(hop(next)) }
			learned := func(*old) {
				g.neighbours.Delete(next)
				g.neighbours.Learn(&arp.Claim{IP: next, MAC: macB, From: near}, x.sw.Tick())
			}
			x.rounds(slices.Concat([]change{
				{name: "another route", do: func(*old, frame.MAC) { route(hop(nextC)) }, undo: again},
				{name: "a blackhole", do: func(*old, frame.MAC) { route() }, undo: again},
				{name: "route deleted", do: func(*old, frame.MAC) { vrf.Delete(to) }, undo: again},
				{name: "neighbour set", do: func(*old, frame.MAC) { check.OK(t, g.neighbours.Set(next, macC, arp.Control, 0)) }, undo: again},
				{name: "neighbour deleted", do: func(*old, frame.MAC) { g.neighbours.Delete(next) }, undo: learned},
				{name: "neighbour moved", do: func(*old, frame.MAC) {
					if g.neighbours.Learn(&arp.Claim{IP: next, MAC: macC, From: near}, x.sw.Tick()) != arp.Moved {
						t.Error("not moved")
					}
				}, undo: learned},
				{name: "neighbours flushed", do: func(*old, frame.MAC) { g.neighbours.Flush() }, undo: learned},
				{name: "neighbour aged", do: func(*old, frame.MAC) { g.neighbours.Sweep(x.sw.Tick()+1000, nil) }, undo: learned},
				{name: "several next hops", do: func(*old, frame.MAC) {
					known()
					check.OK(t, vrf.SetDown(hop(nextC), false))
					check.OK(t, vrf.SetDown(hop(next), true))
					route(hop(next), hop(nextC))
				}, undo: func(*old) {
					check.OK(t, vrf.SetDown(hop(next), false))
					check.OK(t, vrf.SetDown(hop(nextC), true))
				}},
				{name: "another next hop", do: func(*old, frame.MAC) {
					check.OK(t, vrf.SetDown(hop(nextC), false))
					check.OK(t, vrf.SetDown(hop(next), true))
				}, undo: func(*old) {
					check.OK(t, vrf.SetDown(hop(next), false))
					check.OK(t, vrf.SetDown(hop(nextC), true))
				}},
				{name: "gateway's MAC deleted", do: func(*old, frame.MAC) { x.table.Delete(x.dst) }, undo: func(*old) {
					check.OK(t, x.table.Set(x.dst, 0, fdb.Static))
				}},
				{name: "no gateway", do: func(*old, frame.MAC) { set(vswitch.Slots{}) }, undo: func(*old) { set(slots) }},
				{name: "another stage at the way out", do: func(*old, frame.MAC) {
					check.OK(t, x.at[x.to].Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Egress: drops{}}}))
				}, undo: func(*old) { check.OK(t, x.at[x.to].Configure(vswitch.AttachConfig{})) }},
				{name: "interface closed", do: func(*old, frame.MAC) { check.OK(t, g.Close()) }, undo: open},
			}, anywhere))
		})
	}
}
