package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// TCP and UDP both ways, one flow and four, over both address families outside and inside: nothing
// arrives corrupt. The kernel's vxlan device is the other end, on a host as it is, with offloads, which
// is what a newcomer tries first; or on one that sends what a wire would carry.
func TestTrafficIsIntact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		family
		flags string
		asIs  bool
	}{
		{families[0], "", true}, {families[1], "", true},
		{families[0], "", false}, {families[1], "", false}, {families[0], "-offload=false", false},
	} {
		t.Run(fmt.Sprint(c.name, c.flags, c.asIs), func(t *testing.T) {
			v := netns.VXLAN{Addr: "192.168.7.2/24,fd07::2/64", Keep: true}
			if !c.asIs {
				v.Dev, v.Keep = "eth0", false
			}
			a, b := c.peers(t, v)
			p := c.start(t, a, c.mtu, c.flags)
			a.Addr("vxs0", "192.168.7.1/24,fd07::1/64")
			a.Ready()
			b.Ready()
			for _, to := range []string{"192.168.7.2", "fd07::2"} {
				intact(t, a, b, to+" -n 30M", to+" -n 30M -R", to+" -n 4M -P 4", to+" -n 4M -P 4 -R",
					to+" -u -b 20M -l 1300 -k 500", to+" -u -b 20M -l 1300 -k 500 -R")
			}
			l := stop(t, p)
			l.wantDrops(t, "port-full")
			t.Logf("%d bytes in %d frames", l.Rx.Bytes, l.Rx.Frames)
			if c.asIs && (l.Rx.Bytes < 10_000_000 || l.Rx.Bytes/l.Rx.Frames < c.mtu) {
				t.Error("no superframes came in")
			}
		})
	}
}

// intact runs iperf3 from a to b, once for each line of an address and flags. No checksum may be
// wrong, by what the stacks at the ends count.
func intact(t *testing.T, a, b *netns.Host, lines ...string) {
	t.Helper()
	hosts := []*netns.Host{a, b}
	before := []map[string]int{a.ChecksumErrors(), b.ChecksumErrors()}
	for _, line := range lines {
		f := strings.Fields(line)
		for tries := 1; ; tries++ {
			r := a.IPerf(b, f[0], f[1:]...)
			t.Logf("to %s: %v", line, r)
			if r.Bytes >= 300_000 && r.Lost*2 <= r.Packets {
				break
			}
			if tries == 3 { // on a busy machine, iperf3 ends before it has read what came by UDP
				t.Errorf("to %s: %+v", line, r)
				break
			}
		}
	}
	for i, h := range hosts {
		for name, k := range h.ChecksumErrors() {
			if k != before[i][name] {
				t.Errorf("%s: %s rose by %d", h.Name, name, k-before[i][name])
			}
		}
	}
}
