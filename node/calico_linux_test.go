package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/l3"
)

// pod makes a guest as Calico does: one address, and a router that is only on the link. Pod
// k of a node has 10.65.NODE.1 or 10.66.NODE.2.
func (s *site) pod(node, k int) *netns.Host {
	s.l.t.Helper()
	dev := fmt.Sprintf("pod%d", k)
	return s.guest(dev, fmt.Sprintf("%v/32,%v/128", podIP(false, node, k), podIP(true, node, k)), "169.254.1.1,fe80::ecee:eeff:feee:eeee")
}

func podIP(v6 bool, node, k int) netip.Addr {
	if v6 {
		return netip.MustParseAddr(fmt.Sprintf("fd00:6%d:%d::%d", 4+k, node, k))
	}
	return netip.MustParseAddr(fmt.Sprintf("10.6%d.%d.%d", 4+k, node, k))
}

// cmd/vxswitchd/configs/calico: pod 1's block is reached by IP-in-IP, pod 2's directly from
// router to router, as long as the other node is in a subnet of this one's. Of pods only web
// servers and pings are reached, and nobody speaks in another's name.
func TestConfigCalico(t *testing.T) {
	l := newLab(t)
	one := l.start("node1", "192.0.2.11", configFile(t, "calico/node1")) // the hosts have other addresses
	two := l.start("node2", "192.0.2.12", configFile(t, "calico/node2"))
	a1, a2, b1, b2 := one.pod(1, 1), one.pod(1, 2), two.pod(2, 1), two.pod(2, 2)
	for name, v6 := range map[string]bool{"IPv4": false, "IPv6": true} {
		t.Run(name, func(t *testing.T) {
			ip := func(node, k int) string { return podIP(v6, node, k).String() }
			protocol, last := "4", " 1"
			if v6 {
				protocol, last = "41", " "
			}
			w := l.watch()
			wantTTL(t, a1, ip(1, 2), 63)
			w.want("("+echoes+") || ip.proto == 4 || ip.proto == 41", []string{"eth.src", "eth.dst"})

			w = l.watch()
			wantTTL(t, a1, ip(2, 1), 62)
			w.want(echoes, []string{"ip.src", "ip.dst", "ip.proto"}, "192.0.2.21 192.0.2.22 "+protocol, "192.0.2.22 192.0.2.21 "+protocol)

			w = l.watch()
			wantTTL(t, a2, ip(2, 2), 62)
			src, dst := "ip.src", "ip.dst"
			if v6 {
				src, dst = "ipv6.src", "ipv6.dst"
			}
			w.want(echoes, []string{"eth.src", "eth.dst", src, dst, "ip.proto"},
				"02:00:00:ca:00:01 02:00:00:ca:00:02 "+ip(1, 2)+" "+ip(2, 2)+last,
				"02:00:00:ca:00:02 02:00:00:ca:00:01 "+ip(2, 2)+" "+ip(1, 2)+last)

			for _, to := range []struct {
				from, to *netns.Host
				addr     string
				port     int
				want     bool
			}{
				{a1, b1, ip(2, 1), 80, true}, {a1, b1, ip(2, 1), 8080, false},
				{a2, b2, ip(2, 2), 80, true}, {a2, b2, ip(2, 2), 8080, false},
				{a1, a2, ip(1, 2), 80, true}, {a1, a2, ip(1, 2), 8080, false},
			} {
				wantTCP(t, to.from, to.to, to.addr, to.port, to.want)
			}
		})
	}

	// Nobody on the wire heard a pod's question, nor was asked for one.
	w := l.watch()
	for _, p := range []*netns.Host{a1, a2, b1, b2} {
		p.IP("neigh", "flush", "all")
	}
	wantTTL(t, a1, "10.65.2.1", 62)
	wantTTL(t, a2, "10.66.2.2", 62)
	for _, r := range w.stop("arp", "arp.src.proto_ipv4", "arp.dst.proto_ipv4") {
		if strings.HasPrefix(r[0], "10.6") || strings.HasPrefix(r[1], "10.6") || strings.HasPrefix(r[1], "169.254.") {
			t.Errorf("on the wire: ARP from %s for %s", r[0], r[1])
		}
	}

	// A pod that takes another's address is not heard.
	a1.Addr("pod1", "10.65.1.9/32")
	if out, err := a1.Try(t.Context(), "ping", "-n", "-c", "2", "-i", "0.2", "-W", "1", "-I", "10.65.1.9", "10.65.2.1"); err == nil {
		t.Errorf("an address of another: %s", out)
	}
	if got := one.segments[1].guards["pod1"].Stats(); got.Address != 2 {
		t.Errorf("want 2 frames refused: %+v", got)
	}

	// The other node is in another subnet now: its blocks are reached by IP-in-IP only.
	for _, s := range l.sites {
		cfg := *s.Config()
		cfg.VRFs = slices.Clone(cfg.VRFs)
		pools := slices.Clone(cfg.VRFs[0].Pools)
		pools[1].Subnets = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
		if l3.Encapsulation(pools[1].Mode) != l3.CrossSubnet {
			t.Fatalf("pool 1 has mode %v", pools[1].Mode)
		}
		cfg.VRFs[0].Pools = pools
		s.must(&cfg)
	}
	w = l.watch()
	wantTTL(t, a2, "10.66.2.2", 62)
	w.want(echoes, []string{"ip.src", "ip.dst", "ip.proto"}, "192.0.2.21 192.0.2.22 4", "192.0.2.22 192.0.2.21 4")
}
