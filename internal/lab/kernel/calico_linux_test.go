package kernel

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// cluster is two nodes as Calico sets them up, which have one or several links between
// them, the planes. A node has one address on each, as BGP's NEXT_HOP is: peers send packets to it
// in IP and without. Each node has a block of addresses, and pods with one of these each:
//
//	pod 10.65.1.5/32                                          pod 10.65.2.6/32
//	   | TAP, gateway 169.254.1.1                                |
//	+--+------- node 1 --------------+        +--------- node 2 -+---+
//	| pods: VSI 1, ARP mode Access   |        |                      |
//	| 10.65.1.5/32    -> pods        |        |                      |
//	| 10.65.2.0/26    -> node 2      |        |                      |
//	|   by IP-in-IP: VSI 100 + plane +--------+                      |
//	|   directly:    VSI 200 + plane |        |                      |
//	+--------------------------------+        +----------------------+
type cluster struct {
	t      *testing.T
	n      *netns.Net
	planes int
	nodes  [2]*calico
}

// calico is one node. Its numbers are 1 and 2.
type calico struct {
	*node.Node
	c      *cluster
	number int
	h      *netns.Host // where its sockets are
}

const (
	podsVNI   frame.VNI = 1
	tunnelVNI frame.VNI = 100 // and the plane
	directVNI frame.VNI = 200
)

// detection is after how long a node finds a way dead.
const detection = 900 * time.Millisecond

var probed = &node.BFD{SessionConfig: bfd.SessionConfig{Interval: detection / 3, Multiplier: 3}}

// newCluster starts both nodes, whose blocks are reached in that mode.
func newCluster(t *testing.T, planes int, mode l3.Encapsulation) *cluster {
	t.Helper()
	c := &cluster{t: t, n: netns.New(t), planes: planes}
	a, b := c.n.Host("node1"), c.n.Host("node2")
	for p := range planes {
		c.n.Link(a, "", b, "")
		a.TxOff(fmt.Sprintf("eth%d", p))
		b.TxOff(fmt.Sprintf("eth%d", p))
	}
	for i, h := range []*netns.Host{a, b} {
		h.Ready()
		c.nodes[i] = c.node(i+1, h, mode)
	}
	return c
}

// on is the address of a node on a plane.
func on(plane, node int) string { return fmt.Sprintf("10.%d.0.%d", plane+1, node) }

func block(node int) netip.Prefix { return netip.MustParsePrefix(fmt.Sprintf("10.65.%d.0/26", node)) }

func podIP(node, k int) string { return fmt.Sprintf("10.65.%d.%d", node, k) }

func (c *cluster) must(err error) {
	c.t.Helper()
	check.OK(c.t, err)
}

func (c *cluster) node(number int, h *netns.Host, mode l3.Encapsulation) *calico {
	c.t.Helper()
	n := &calico{running(c.t, nil), c, number, h}
	gateway := func(mac frame.MAC, addrs ...string) *node.SegmentGateway {
		g := &node.SegmentGateway{VRF: "cluster", Gateway: node.Gateway{MAC: mac}}
		for _, a := range addrs {
			g.Addresses = append(g.Addresses, netip.MustParsePrefix(a))
		}
		return g
	}
	// What no pod has of the node's own block is nowhere.
	pool := node.Pool{Mode: mode, Blocks: []node.Block{{Prefix: block(number)}, {Prefix: block(3 - number), Nodes: n.ways(nil)}}}
	// The pods' gateway is on the link and nowhere else.
	cfg := &node.Config{Segments: []node.Segment{{
		VNI: podsVNI, VSIConfig: vswitch.VSIConfig{RouteIsolated: true},
		Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Access}},
		Gateway:    gateway(arp.DefaultAccessMAC, "169.254.1.1/32", "fe80::ecee:eeff:feee:eeee/128"),
	}}}
	// Both ways to the other node on a plane, from and to one address.
	for p := range c.planes {
		pool.Subnets = append(pool.Subnets, netip.MustParsePrefix(on(p, 0)+"/24"))
		tunnel, link := fmt.Sprintf("ipip%d", p), fmt.Sprintf("eth%d", p)
		cfg.Tunnels = append(cfg.Tunnels, node.Tunnel{
			Config: vtep.Config{Name: tunnel, Type: encap.TypeIPIP}, Local: netip.MustParseAddr(on(p, number)), BFD: probed,
			Underlay: node.UnderlayPacket, UDPConfig: underlay.UDPConfig{Device: link},
		})
		cfg.Ports = append(cfg.Ports, node.Port{Name: link, Type: node.PortPacket})
		cfg.Segments = append(cfg.Segments, node.Segment{
			VNI: tunnelVNI + frame.VNI(p), Tunnel: tunnel,
			Gateway: gateway(frame.MAC{}, fmt.Sprintf("10.66.%d.%d/32", number, p)),
		}, node.Segment{
			VNI: directVNI + frame.VNI(p), Members: []node.Member{{Port: link}},
			Gateway: gateway(frame.MAC{2, 0, 0, 0xca, byte(p), byte(number)}, on(p, number)+"/24"),
		})
		cfg.Segments[len(cfg.Segments)-1].Gateway.BFD = probed
	}
	cfg.VRFs = []node.VRF{{Name: "cluster", Pools: []node.Pool{pool}}}
	h.Do(func() { c.must(n.Apply(cfg)) })
	return n
}

// ways are those to the other node, by the planes that are not cut.
func (n *calico) ways(cut map[int]bool) (ways []node.BlockNode) {
	other := 3 - n.number
	for p := range n.c.planes {
		if cut[p] {
			continue
		}
		addr := netip.MustParseAddr(on(p, other))
		ways = append(ways, node.BlockNode{
			Address: addr,
			Tunnel:  &node.Hop{Segment: tunnelVNI + frame.VNI(p), Remote: addr},
			Direct:  &node.Hop{Segment: directVNI + frame.VNI(p), IP: addr},
		})
	}
	return ways
}

// setPool changes the pool under traffic.
func (n *calico) setPool(edit func(*node.Pool)) {
	n.c.t.Helper()
	n.c.must(n.Update(func(c *node.Config) error { edit(&c.VRFs[0].Pools[0]); return nil }))
}

// pod starts a pod.
func (n *calico) pod(k int) *netns.Host {
	c := n.c
	c.t.Helper()
	name, ip := fmt.Sprintf("pod%d-%d", n.number, k), podIP(n.number, k)
	h := c.n.Host(name)
	addr := netip.MustParseAddr(ip)
	c.must(n.Update(func(cfg *node.Config) error {
		cfg.Ports = append(cfg.Ports, node.Port{Name: name, DeviceConfig: port.DeviceConfig{
			MTU: 1480, MAC: frame.MAC{2, 0, 0, 0xdd, byte(n.number), byte(k)}, Namespace: h.NS,
		}})
		cfg.Segments[0].Members = append(cfg.Segments[0].Members, node.Member{Port: name, Isolated: true})
		cfg.VRFs[0].Routes = append(cfg.VRFs[0].Routes, node.Route{
			Prefix: netip.PrefixFrom(addr, 32), Via: []node.Hop{{Segment: podsVNI, IP: addr}},
		})
		return nil
	}))
	h.Addr(name, ip+"/32")
	h.Route("169.254.1.1/32", "dev", name, "scope", "link")
	h.Route("default", "via", "169.254.1.1", "dev", name)
	return h
}
