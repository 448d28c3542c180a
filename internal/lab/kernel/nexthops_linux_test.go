package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/bird"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

// Flows to a server share two routers, Linux hosts on which BIRD answers BFD. When one is silent, or the port to it is
// gone, its flows take the other one; those of the other stay; and when it is back, they return.
func TestRouters(t *testing.T) {
	n := netns.New(t)
	home, pod, server := n.Host("node"), n.Host("pod"), n.Host("server")
	server.IP("addr", "add", "172.16.0.1/32", "dev", "lo")
	server.IP("link", "set", "lo", "up")
	gateway := func(mac frame.MAC, addr string) *node.SegmentGateway {
		return &node.SegmentGateway{VRF: "red", Gateway: node.Gateway{MAC: mac, Addresses: []netip.Prefix{netip.MustParsePrefix(addr)}}}
	}
	cfg := &node.Config{
		Ports: []node.Port{{Name: "pod", DeviceConfig: port.DeviceConfig{Namespace: pod.NS}}},
		Segments: []node.Segment{{
			VNI: 1, Members: []node.Member{{Port: "pod"}}, Gateway: gateway(frame.MAC{2, 0, 0, 0, 1, 1}, "10.65.1.1/24"),
		}},
	}
	route := node.Route{Prefix: netip.MustParsePrefix("172.16.0.0/12")}
	var routers []*netns.Host
	for k := range 2 {
		r := n.Router(fmt.Sprintf("router%d", k))
		n.Link(home, fmt.Sprintf("10.1.%d.9/24", k), r, fmt.Sprintf("10.1.%d.2/24", k))
		n.Link(r, fmt.Sprintf("10.2.%d.1/24", k), server, fmt.Sprintf("10.2.%d.2/24", k))
		home.TxOff(fmt.Sprintf("eth%d", k))
		r.Route("172.16.0.1/32", "via", fmt.Sprintf("10.2.%d.2", k))
		r.Ready()
		routers = append(routers, r)
		birdBFD(t, r, fmt.Sprintf(`neighbor 10.1.%d.1 dev "eth0";`, k))
		name, vni := fmt.Sprintf("eth%d", k), frame.VNI(200+k)
		cfg.Ports = append(cfg.Ports, node.Port{Name: name, Type: node.PortPacket})
		s := node.Segment{VNI: vni, Members: []node.Member{{Port: name}}, Gateway: gateway(frame.MAC{2, 0, 0, 0, 2, byte(k)}, fmt.Sprintf("10.1.%d.1/24", k))}
		s.Gateway.BFD = probed
		cfg.Segments = append(cfg.Segments, s)
		route.Via = append(route.Via, node.Hop{Segment: vni, IP: netip.MustParseAddr(fmt.Sprintf("10.1.%d.2", k))})
	}
	server.Sysctl("net.ipv4.conf.all.rp_filter", "0")
	cfg.VRFs = []node.VRF{{Name: "red", Routes: []node.Route{route}}}
	x := running(t, nil)
	home.Ready()
	home.Do(func() { check.OK(t, x.Apply(cfg)) })
	pod.Addr("pod", "10.65.1.9/24")
	pod.Route("default", "via", "10.65.1.1")

	const flows = 400
	all := newFlows(t, pod, server, "172.16.0.1", flows)
	on := func() map[int]int { return all.ways(server, []string{"eth0", "eth1"}, "udp dst port 9000", 14) }
	alive(t, x, 2)
	all.arrive() // finds the routers
	before := on()
	var count [2]int
	for _, k := range before {
		count[k]++
	}
	t.Logf("flows of routers: %v", count)
	check.True(t, count[0] >= flows*4/10 && count[1] >= flows*4/10 && len(before) == flows, "%v of %d", count, flows)
	moved := func(what string, gone int) {
		t.Helper()
		got := all.arrive()
		check.True(t, len(got) == flows, "%s: %d of %d flows arrive", what, len(got), flows)
		for f, k := range on() {
			if k == gone || before[f] != gone && before[f] != k {
				t.Fatalf("%s: flow %d is on router %d, was on %d", what, f, k, before[f])
			}
		}
	}

	routers[0].Run("nft", "add table netdev silent; add chain netdev silent in { type filter hook ingress device eth0 priority 0; policy drop; }")
	time.Sleep(3 * detection)
	moved("router 0 is silent", 0)
	routers[0].Run("nft", "delete table netdev silent")
	alive(t, x, 2)
	check.True(t, len(all.arrive()) == flows, "router 0 is back")
	check.Equal(t, "flows moved for good", fmt.Sprint(on()), fmt.Sprint(before))

	home.IP("link", "del", "eth1")
	time.Sleep(3 * detection)
	moved("the port to router 1 is gone", 1)
	for _, v := range x.Gateway().VRFs() {
		var down []string
		for h, is := range v.NextHops() {
			if is {
				down = append(down, h.String())
			}
		}
		check.True(t, slices.Equal(down, []string{"vni 201 via 10.1.1.2"}), "next hops that are down: %v", down)
	}
}

// birdBFD starts BIRD with a statement of its protocol BFD.
func birdBFD(t *testing.T, h *netns.Host, session string) {
	t.Helper()
	bird.Start(t, h, fmt.Sprintf("router id 10.0.0.2;\nprotocol device { }\nprotocol bfd {\ninterface \"*\" { interval %d ms; multiplier 3; };\n%s\n}\n",
		(detection/3).Milliseconds(), session))
}

// alive waits until n sessions of a node are alive.
func alive(t *testing.T, x *node.Node, n int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		is, all := 0, x.BFD()
		for _, s := range all {
			if s.Status == bfd.Alive && (s.Tunnel != "" || s.VRF != "" && s.VNI != 0) {
				is++
			}
		}
		if is == n && len(all) == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d ways are alive: %+v", is, n, all)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
