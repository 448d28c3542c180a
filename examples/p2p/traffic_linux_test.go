package main

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// TCP and UDP both ways, against the kernel, over both address families and with both
// inside: nothing arrives corrupt, by the checksums that the stacks at the ends count.
func TestTrafficIsIntact(t *testing.T) {
	for _, c := range []struct {
		family
		flags string
	}{{families[0], ""}, {families[1], ""}, {families[0], "-offload=false"}} {
		t.Run(c.name+c.flags, func(t *testing.T) {
			n := netns.New(t)
			a, b := n.Host("a"), n.Host("b")
			n.Link(a, c.local+c.bits, b, c.remote+c.bits)
			a.Ready()
			b.Ready()
			b.VXLAN("vx0", netns.VXLAN{ID: 9, Local: c.remote, Remote: c.local, Dev: "eth0", Addr: "192.168.7.2/24,fd07::2/64"})
			p := start(t, a, c.ready("vxs0", 9, c.mtu), append([]string{"-local", c.local, "-remote", c.remote, "-id", "9"}, strings.Fields(c.flags)...)...)
			a.Addr("vxs0", "192.168.7.1/24,fd07::1/64")
			before := [2]map[string]int{a.ChecksumErrors(), b.ChecksumErrors()}
			for _, to := range []string{"192.168.7.2", "fd07::2"} {
				a.Ping(to, 2)
				for _, args := range []string{"-n 30M", "-n 30M -R", "-u -b 20M -l 1200 -k 500", "-u -b 20M -l 1200 -k 500 -R"} {
					r := a.IPerf(b, to, strings.Fields(args)...)
					t.Logf("to %s %s: %v", to, args, r)
					if r.Bytes < 100_000 || r.Lost*2 > r.Packets {
						t.Errorf("to %s %s: %+v", to, args, r)
					}
				}
			}
			for i, h := range []*netns.Host{a, b} {
				for name, k := range h.ChecksumErrors() {
					if k != before[i][name] {
						t.Errorf("%s: %s rose by %d", h.Name, name, k-before[i][name])
					}
				}
			}
			l := stop(t, p)
			l.wantDrops(t, "port-full")
		})
	}
}
