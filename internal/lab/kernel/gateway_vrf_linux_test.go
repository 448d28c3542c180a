package kernel

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/l3"
)

// Two VRFs with the same subnets, addresses and MACs: pings in both at once arrive each in
// its own, in VNIs of its own, and what only one has the other does not reach.
//
//	red:  VM1 -- A === VNI 10, 20   === B -- VM4, and subnet 30
//	blue: VM1 -- A === VNI 110, 120 === B -- VM4
func TestVRFs(t *testing.T) {
	f := newFabric(t, 2)
	a, b := f.leaves[0], f.leaves[1]
	pings := map[string]int{"red": 3, "blue": 5}
	from, to := map[string]*netns.Host{}, map[string]*netns.Host{}
	for vrf, base := range map[string]frame.VNI{"red": 0, "blue": 100} {
		f.anycast(vrf, base+10, 10)
		f.anycast(vrf, base+20, 20)
		from[vrf], to[vrf] = a.host(base+10, 10, 1, 1450), b.host(base+20, 20, 4, 1450)
	}
	f.anycast("red", 30, 30)
	inSubnets(t, func(t *testing.T, in func(subnet, n byte) string) {
		counter := "IcmpInEchos"
		none := "Destination Net Unreachable"
		if strings.Contains(in(1, 1), ":") {
			counter, none = "Icmp6InEchos", "Destination unreachable: No route"
		}
		echos := func(vrf string) int { return to[vrf].Nstat()[counter] }
		red, blue := echos("red"), echos("blue")
		w := f.watch()
		var procs []*netns.Proc
		for vrf, n := range pings {
			procs = append(procs, from[vrf].Start("ping", "-n", "-c", fmt.Sprint(n), "-i", "0.01", "-W", "2", in(20, 4)))
		}
		for _, p := range procs {
			err := p.Wait()
			check.True(t, err == nil, "%v\n%s", err, p.Output())
		}
		r, b := echos("red")-red, echos("blue")-blue
		check.True(t, r == pings["red"] && b == pings["blue"], "%d pings arrived in red, %d in blue, want %v", r, b, pings)
		got := map[string]int{}
		for _, s := range w.steps() {
			got[s]++
		}
		for s, want := range map[string]int{
			"A>B 20 A>VM4 ping 63": pings["red"], "B>A 10 B>VM1 pong 63": pings["red"],
			"A>B 120 A>VM4 ping 63": pings["blue"], "B>A 110 B>VM1 pong 63": pings["blue"],
		} {
			check.True(t, got[s] == want, "%d of %q, want %d; all: %v", got[s], s, want, got)
		}
		ttl := from["red"].PingTTL(in(30, gatewayNo))
		check.True(t, ttl == 64, "another address of the gateway answers with TTL %d", ttl)
		out, _ := from["blue"].Try(t.Context(), "ping", "-n", "-c", "1", "-W", "2", in(30, gatewayNo))
		check.True(t, strings.Contains(out, none), "blue reaches a subnet of red:\n%s", out)
	})
}

// Two gateways whose default routes lead to each other: a packet that neither knows better
// goes to and fro until its TTL ends it, then the sender is told, and only so often.
func TestRoutingLoop(t *testing.T) {
	f := newFabric(t, 2)
	a, b := f.leaves[0], f.leaves[1]
	a.vsi(10)
	b.vsi(20)
	a.gateway("red", 10, 10, false)
	b.gateway("red", 20, 20, false)
	a.reach(a.l3vni("red", 999), "red", b.router(), b.addr, "0.0.0.0/0", "::/0")
	end := b.l3vni("red", 999)
	b.reach(end, "red", a.router(), a.addr, "0.0.0.0/0", "::/0")
	vm1 := a.host(10, 10, 1, 1450)
	for _, c := range []struct{ name, to, gate, told, message string }{
		{"IPv4", "198.51.100.1", in4(20, gatewayNo), "Time to live exceeded", "icmp 11/0 ttl 64"},
		{"IPv6", "2001:db8::1", in6(20, gatewayNo), "Time exceeded: Hop limit", "icmp 3/0 ttl 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := f.watch()
			out, _ := vm1.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "2", "-t", "64", c.to)
			first := "From " + c.gate + " icmp_seq=1 " + c.told
			check.True(t, strings.Contains(out, first), "no %q in\n%s", first, out)
			var want []string
			for ttl := 63; ttl > 0; ttl-- {
				way := "A>B 999 RA>RB"
				if ttl%2 == 0 {
					way = "B>A 999 RB>RA"
				}
				want = append(want, fmt.Sprintf("%s ping %d", way, ttl))
			}
			w.want(append(want, "B>A 999 RB>RA "+c.message)...)

			const n = 100
			before, start := end.Stats(), time.Now()
			out, _ = vm1.Try(t.Context(), "ping", "-n", "-q", "-c", fmt.Sprint(n), "-i", "0.001", "-W", "0.5", "-t", "64", c.to)
			b.h.Until("the end of every packet", func() bool {
				s := end.Stats()
				return s.Errors-before.Errors+s.Limited-before.Limited == n
			})
			told := int(end.Stats().Errors - before.Errors)
			// Seconds begin when they do: one more may have been touched at each end.
			most := l3.DefaultPerSender * (int(time.Since(start)/time.Second) + 2)
			check.True(t, told != 0 && told <= most && told != n, "%d errors for %d packets, want 1 to %d", told, n, most)
			errors := fmt.Sprintf("+%d errors", told)
			check.True(t, strings.Contains(out, errors), "no %q in\n%s", errors, out)
			t.Logf("%d errors for %d packets", told, n)
		})
	}
}
