package kernel

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/internal/lab/bird"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
)

// BIRD on the peer and on a route reflector announce one address for each node. The peer's kernel has it as next hop of what
// goes without the tunnel, and a plane of ours makes of the peer's address both a next hop and a VTEP.
func TestOneAddressBGP(t *testing.T) {
	onOneAddress(t, false, func(t *testing.T, o *oneAddress) {
		o.h.Do(func() {
			check.OK(t, o.Update(func(c *node.Config) error { c.VRFs[0].Routes = nil; return nil }))
		})
		far := o.ip(66, 1, 0) + o.bits() // our pods without the tunnel
		o.b.IP("route", "del", far)
		_, err := o.peer[plain].Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", o.ip(66, 1, 5))
		check.True(t, err != nil, "there is a route to the pod before BGP")

		n := netns.New(t)
		reflector := n.Host("reflector")
		n.Link(o.b, o.ip(9, 0, 1)+o.bits(), reflector, o.ip(9, 0, 2)+o.bits())
		o.b.Ready()
		reflector.Ready()
		channel, family := "ipv4", "-4"
		if o.v6 {
			channel, family = "ipv6", "-6"
		}
		session := func(own, peer int, blocks, nextHop string) string {
			return fmt.Sprintf(`router id 10.9.0.%[1]d;
protocol device { }
protocol direct { %[3]s; }
protocol bgp peer {
  local %[5]s as 65000; neighbor %[6]s as 65000; connect delay time 1; connect retry time 1;
  %[3]s { import all; next hop keep; export filter { if ! (net ~ [%[4]s]) then reject; bgp_next_hop = %[7]s; accept; }; };
}
`, own, peer, channel, blocks, o.ip(9, 0, own), o.ip(9, 0, peer), nextHop)
		}
		bird.Start(t, o.b, session(1, 2, o.ip(65, 2, 0)+o.bits()+", "+o.ip(66, 2, 0)+o.bits(), o.kernel())+
			fmt.Sprintf("protocol kernel { %s { export where source = RTS_BGP; }; }\n", channel))
		passes := bird.Start(t, reflector, session(2, 1, far, o.own())+fmt.Sprintf("protocol static { %s; route %s blackhole; }\n", channel, far))

		// The peer's BIRD has put our address into its kernel.
		o.b.Until("the route is there", func() bool {
			return strings.Contains(o.b.IP(family, "route", "show", far), fmt.Sprintf("via %v dev eth0 proto bird", netip.MustParseAddr(o.own())))
		})

		// Our plane, of exported names: what the reflector knows, as rows.
		line := regexp.MustCompile(`BGP\.next_hop: (\S+)`)
		nextHop := func(net int) netip.Addr {
			var found []string
			reflector.Until("BIRD has the route", func() bool {
				found = line.FindStringSubmatch(passes.Try("show", "route", o.ip(net, 2, 0)+o.bits(), "all"))
				return found != nil
			})
			return netip.MustParseAddr(found[1])
		}
		row := func(net int, v control.Via) control.Prefix {
			return control.Prefix{VRF: "v", Prefix: netip.MustParsePrefix(o.ip(net, 2, 0) + o.bits()), Via: v}
		}
		in := control.Via{VNI: 100, VTEP: netip.AddrPortFrom(nextHop(65), 0)}
		if o.typ == encap.TypeVXLAN {
			in.MAC = peerMAC
		}
		check.OK(t, o.Program("bgp", control.Update{Snapshot: true, Add: []control.Row{row(65, in), row(66, control.Via{VNI: 200, IP: nextHop(66)})}}))
		check.Equal(t, "next hops", fmt.Sprint(nextHop(65), nextHop(66)), strings.Repeat(fmt.Sprint(" ", netip.MustParseAddr(o.kernel())), 2)[1:])
		o.walk()
	})
}
