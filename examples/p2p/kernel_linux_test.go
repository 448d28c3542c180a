package main

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// What a newcomer tries first: p2p here, the kernel's vxlan device there, a veth pair between them,
// and nothing set anywhere. TCP and UDP go both ways, one flow and four, over both address
// families outside and inside.
func TestKernelPeerAsItIs(t *testing.T) {
	t.Parallel()
	for _, c := range families {
		t.Run(c.name, func(t *testing.T) {
			n := netns.New(t)
			a, b := n.Host("a"), n.Host("b")
			n.Link(a, c.local+c.bits, b, c.remote+c.bits)
			b.VXLAN("vx0", netns.VXLAN{ID: 100, Local: c.remote, Remote: c.local, Addr: "192.168.7.2/24,fd07::2/64", Keep: true})
			p := start(t, a, c.ready("vxs0", 100, c.mtu), "-local", c.local, "-remote", c.remote, "-id", "100")
			a.Addr("vxs0", "192.168.7.1/24,fd07::1/64")
			a.Ready()
			b.Ready()
			before := []map[string]int{a.ChecksumErrors(), b.ChecksumErrors()}
			for _, addr := range []string{"192.168.7.2", "fd07::2"} {
				for _, args := range []string{"-n 16M", "-n 16M -R", "-n 4M -P 4", "-n 4M -P 4 -R", "-u -b 20M -l 1300 -k 300", "-u -b 20M -l 1300 -k 300 -R"} {
					if r := a.IPerf(b, addr, strings.Fields(args)...); r.Bytes < 300_000 || r.Lost*2 > r.Packets {
						t.Errorf("to %s %s: %+v", addr, args, r)
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
			t.Logf("%d bytes in %d frames", l.Rx.Bytes, l.Rx.Frames)
			if l.Rx.Bytes < 10_000_000 || l.Rx.Bytes/l.Rx.Frames < c.mtu {
				t.Error("no superframes came in")
			}
		})
	}
}
