package bgp

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// newSubnets makes a lab with two networks on one switch, 10.0.1.0/24 and 10.0.2.0/24, and router 254 between them.
func newSubnets(t *testing.T) (l *lab, on func(addr string) plug) {
	t.Helper()
	l = newLab(t)
	sw := l.n.Switch("sw")
	l.host(254, plug{sw, "10.0.1.254/24,10.0.2.254/24"})
	return l, func(addr string) plug { return plug{sw, addr + "/24"} }
}

// tunnelled starts ours, 10.0.1.1, with a pool and peers. It returns its settings.
func (l *lab) tunnelled(kind encap.Type, on plug, pool Pool, nodes ...string) *Config {
	l.t.Helper()
	c := memberSettings()
	pool.Prefix = prefix("10.65.0.0/16")
	c.RouterID, c.Addresses, c.Routers = addr("10.0.1.101"), []netip.Addr{addr("10.0.1.1")}, []netip.Addr{addr("10.0.1.254")}
	c.Listen, c.Pools, c.Peers = []netip.Addr{c.RouterID}, []Pool{pool}, peers(64512, "10.0.1.101", nodes...)
	l.member(shape{Nets: prefixes("10.0.1.1/24"), Tunnel: kind, Router: addr("10.0.1.254")}, []plug{on}, c)
	l.ours.h.Route("default", "via", "10.0.1.254")
	return c
}

// to is a route to node i, at an address, by a segment.
func to(i int, node, way string) string {
	return fmt.Sprintf("10.65.%d.0/26 next hop %s of %[2]s via vni %s", i, node, way)
}

// calicoMAC is what node i has as Calico's VXLANTunnelMACAddr.
func calicoMAC(i int) string { return fmt.Sprintf("66:00:00:00:00:%02x", i) }

// felix gives node i the kernel's routes to our block as Calico's Felix does: by vxlan.calico, or directly.
func (l *lab) felix(i int, vxlan bool) {
	l.t.Helper()
	if h := l.hosts[i]; vxlan {
		h.IP("route", "replace", block, "via", "10.65.1.0", "dev", "vxlan.calico", "onlink")
	} else {
		h.IP("route", "replace", block, "via", "10.0.1.1", "dev", "eth0")
	}
}

// A pool with VXLAN as Calico has it, with nodes whose kernel has vxlan.calico: always, and with those of other subnets only.
func TestVXLANPool(t *testing.T) {
	l, on := newSubnets(t)
	nodes := map[int]string{2: "10.0.1.2", 3: "10.0.2.3"}
	for i, a := range nodes {
		l.node(i, on(a))
		h := l.hosts[i]
		h.Route("10.0.0.0/16", "via", fmt.Sprintf("10.0.%d.254", i-1))
		h.VXLAN("vxlan.calico", netns.VXLAN{ID: 4096, Local: a, Dev: "eth0", Args: []string{"nolearning"}})
		h.SetMAC("vxlan.calico", calicoMAC(i))
		h.Addr("vxlan.calico", fmt.Sprintf("10.65.%d.0/32", i))
		h.Neighbour("vxlan.calico", "10.65.1.0", calicoMAC(1))
		h.Run("bridge", "fdb", "add", calicoMAC(1), "dev", "vxlan.calico", "dst", "10.0.1.1")
		l.felix(i, true)
		// BIRD writes no route of such a pool into its kernel.
		conf := strings.Replace(common(a), "if source = RTS_BGP then accept;", "", 1) + blockOf(i) + fmt.Sprintf(`protocol bgp ours from quick { local %s as 64512; neighbor 10.0.1.101 as 64512; multihop;
  ipv4 { import all; gateway recursive; add paths on; export filter blocks; }; }
`, a)
		l.bird(i, conf)
	}
	c := l.tunnelled(encap.TypeVXLAN, on("10.0.1.101"), Pool{Encapsulation: VXLAN, Segment: 4096}, nodes[2], nodes[3])
	arp := l.noARP(2, 3, 254)

	l.ours.h.Until("no node has a MAC yet", func() bool { return len(l.ours.ask().Routes) == 2 })
	refused := " refused: unknown-node"
	l.ours.want("nodes without a MAC", "10.65.2.0/26 next hop 10.0.1.2 of 10.0.1.2"+refused, "10.65.3.0/26 next hop 10.0.2.3 of 10.0.2.3"+refused)
	for i, a := range nodes {
		r := Remote{Address: addr(a)}
		check.OK(t, r.MAC.UnmarshalText([]byte(calicoMAC(i))))
		c.Nodes = append(c.Nodes, r)
	}
	l.ours.set(c)
	vxlan := func(i int) string {
		return to(i, nodes[i], fmt.Sprintf("4096 mac %s vtep %s:0", calicoMAC(i), nodes[i]))
	}
	l.ours.want("in VXLAN", vxlan(2), vxlan(3))
	wire := l.hosts[2].Capture("eth0", "udp dst port 4789")
	l.pings(62, 2, 3)
	check.True(t, len(wire.Stop()) >= 4, "packets of pod 2 are not in VXLAN")
	l.hops(l.ours.pod, pod2, "10.65.1.1", "10.65.2.0", pod2)
	l.hops(l.pods[3], pod1, "10.65.3.1", "10.65.1.1", pod1)

	c.Pools[0].Mode = CrossSubnet
	l.ours.set(c)
	l.felix(2, false)
	l.ours.want("across subnets", to(2, nodes[2], "200 ip 10.0.1.2"), vxlan(3))
	wire, far := l.hosts[2].Capture("eth0", "udp dst port 4789"), l.hosts[3].Capture("eth0", "udp dst port 4789")
	l.pings(62, 2, 3)
	check.Equal(t, "packets of pod 2 in VXLAN", len(wire.Stop()), 0)
	check.True(t, len(far.Stop()) >= 4, "packets of pod 3 are not in VXLAN")

	// Never in a tunnel: by the router, which then knows of pods.
	pool := c.Pools[0]
	c.Pools[0] = Pool{Prefix: pool.Prefix}
	l.ours.set(c)
	l.hosts[254].Route(block, "via", "10.0.1.1")
	l.hosts[254].Route("10.65.3.0/26", "via", "10.0.2.3")
	l.hosts[3].IP("route", "replace", block, "via", "10.0.2.254", "dev", "eth0")
	l.ours.want("by the router", to(2, nodes[2], "200 ip 10.0.1.2"), to(3, nodes[3], "200 ip 10.0.1.254"))
	l.pings(62, 2)
	l.pings(61, 3)
	l.hops(l.ours.pod, pod3, "10.65.1.1", "10.0.1.254", "10.0.2.3", pod3)
	c.Pools[0] = pool
	l.ours.set(c)
	l.felix(3, true)
	l.ours.want("across subnets again", to(2, nodes[2], "200 ip 10.0.1.2"), vxlan(3))
	l.pings(62, 2, 3)

	l.birds[3].Do("disable", "own")
	l.ours.want("a block is withdrawn", to(2, nodes[2], "200 ip 10.0.1.2"))
	l.birds[3].Do("enable", "own")
	l.ours.want("and is back", to(2, nodes[2], "200 ip 10.0.1.2"), vxlan(3))
	l.cut(3, "down")
	l.ours.want("a node is dead", to(2, nodes[2], "200 ip 10.0.1.2"))
	arp()
}
