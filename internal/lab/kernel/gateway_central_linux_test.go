package kernel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The gateway is on one node, and no host is there: between two networks a packet is in
// the tunnel twice. Each step is on the underlay once, from a ping with nothing resolved
// before, and the ping is answered.
//
//	VM1 -- A === VNI 10 === C === VNI 20 === B -- VM4
//	                    G10   G20
func TestCentralGateway(t *testing.T) {
	f := newFabric(t, 3)
	a, b, c := f.leaves[0], f.leaves[1], f.leaves[2]
	f.mesh(10, a, c)
	f.mesh(20, b, c)
	c.gateway("red", 10, 10, false)
	c.gateway("red", 20, 20, false)
	vm1, vm4 := a.host(10, 10, 1, 1450), b.host(20, 20, 4, 1450)

	for _, fam := range []struct {
		name  string
		in    func(subnet, n byte) string
		extra []string // what VM4 asks before it answers
	}{
		// It has the gateway's MAC already, from the gateway's own question...
		{"IPv4", in4, nil},
		// ... which in IPv6 came from the link-local address.
		{"IPv6", in6, []string{"B>C 20 VM4>all who-has fd00:20::254", "C>B 20 G20>VM4 fd00:20::254 is-at G20"}},
	} {
		t.Run(fam.name, func(t *testing.T) {
			here, there := fam.in(10, 1), fam.in(20, 4)
			gate10 := fam.in(10, gatewayNo)
			w, link := f.watch(), vm4.Capture(vm4.Name, "icmp or icmp6")
			wantTTL(t, vm1, there, 63)
			w.want(slices.Concat([]string{
				"A>C 10 VM1>all who-has " + gate10,
				"C>A 10 G10>VM1 " + gate10 + " is-at G10",
				"A>C 10 VM1>G10 ping 64",
				"C>B 20 G20>all who-has " + there,
				"B>C 20 VM4>G20 " + there + " is-at VM4",
				"C>B 20 G20>VM4 ping 63",
			}, fam.extra, []string{
				"B>C 20 VM4>G20 pong 64",
				"C>A 10 G10>VM1 pong 63",
			})...)
			got := slices.DeleteFunc(f.inWords(link), func(s string) bool { return !strings.Contains(s, " p") })
			want := []string{"G20>VM4 ping 63", "VM4>G20 pong 64"}
			check.True(t, slices.Equal(got, want), "on VM4's link\n%q, want\n%q", got, want)

			check.Equal(t, "traceroute from VM1", fmt.Sprint(vm1.Traceroute(there)), fmt.Sprint([]string{gate10, there}))
			check.Equal(t, "traceroute from VM4", fmt.Sprint(vm4.Traceroute(here)), fmt.Sprint([]string{fam.in(20, gatewayNo), here}))
			wantTTL(t, vm1, gate10, 64)
		})
	}
	t.Run("unreachable", func(t *testing.T) { unreachable(t, vm1) })
}

// unreachable pings hosts that are not there: their gateway says so, after it has asked
// three times.
func unreachable(t *testing.T, vm *netns.Host) {
	v4 := vm.Start("ping", "-n", "-c", "1", "-W", "8", in4(20, 99))
	v6 := vm.Start("ping", "-n", "-c", "1", "-W", "8", in6(20, 99))
	v4.Want("From " + in4(10, gatewayNo) + " icmp_seq=1 Destination Host Unreachable")
	v6.Want("From " + in6(10, gatewayNo) + " icmp_seq=1 Destination unreachable: Address unreachable")
	v4.Wait()
	v6.Wait()
	// No network has these: the gateway says so at once.
	for to, want := range map[string]string{
		"198.51.100.1": "From " + in4(10, gatewayNo) + " icmp_seq=1 Destination Net Unreachable",
		"2001:db8::1":  "From " + in6(10, gatewayNo) + " icmp_seq=1 Destination unreachable: No route",
	} {
		out, _ := vm.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "2", to)
		check.True(t, strings.Contains(out, want), "ping %s: %s", to, out)
	}
}
