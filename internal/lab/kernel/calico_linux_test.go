package kernel

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// cluster is two nodes as Calico sets them up, which have one or several links between
// them, the planes. Each node has a block of addresses, and pods with one of these each:
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
	c        *cluster
	number   int
	h        *netns.Host // where its sockets are
	sw       *vswitch.Switch
	vrf      *l3.VRF
	pods     *l3.Interface
	segment  *vswitch.VSI // the pods'
	tunnels  []*l3.Interface
	direct   []*l3.Interface
	pool     *l3.Pool
	peers    []uint16 // the other node's, by plane
	podNames map[int]*netns.Host
}

const (
	podsVNI   frame.VNI = 1
	tunnelVNI frame.VNI = 100 // and the plane
	directVNI frame.VNI = 200
)

// newCluster starts both nodes, whose blocks are reached in that mode.
func newCluster(t *testing.T, planes int, mode l3.Encapsulation) *cluster {
	t.Helper()
	c := &cluster{t: t, n: netns.New(t), planes: planes}
	a, b := c.n.Host("node1"), c.n.Host("node2")
	for p := range planes {
		c.n.Link(a, on(p, 1)+"/24", b, on(p, 2)+"/24")
		a.TxOff(fmt.Sprintf("eth%d", p))
		b.TxOff(fmt.Sprintf("eth%d", p))
	}
	for i, h := range []*netns.Host{a, b} {
		h.Ready()
		c.nodes[i] = c.node(i+1, h, mode)
	}
	for i, n := range c.nodes {
		n.learn(c.nodes[1-i], nil)
	}
	return c
}

// on is the address of a node on a plane; with 100 more, that of its router there.
func on(plane, node int) string { return fmt.Sprintf("10.%d.0.%d", plane+1, node) }

func block(node int) netip.Prefix { return netip.MustParsePrefix(fmt.Sprintf("10.65.%d.0/26", node)) }

func podIP(node, k int) string { return fmt.Sprintf("10.65.%d.%d", node, k) }

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) node(number int, h *netns.Host, mode l3.Encapsulation) *calico {
	c.t.Helper()
	n := &calico{c: c, number: number, h: h, podNames: map[int]*netns.Host{}}
	n.sw = running(c.t)
	g, err := l3.NewGateway(nil)
	c.must(err)
	n.vrf = g.VRF("cluster")

	// The pods' gateway is on the link and nowhere else.
	n.segment, err = n.sw.VSI(podsVNI, nil)
	c.must(err)
	n.pods = n.iface(n.segment, l3.InterfaceConfig{
		MAC:       arp.DefaultAccessMAC,
		Addresses: []netip.Prefix{netip.MustParsePrefix("169.254.1.1/32"), netip.MustParsePrefix("fe80::ecee:eeff:feee:eeee/128")},
	}, arp.Access)
	for p := range c.planes {
		n.join(p)
	}
	var subnets []netip.Prefix
	for p := range c.planes {
		subnets = append(subnets, netip.MustParsePrefix(on(p, 0)+"/24"))
	}
	n.pool, err = n.vrf.NewPool(mode, subnets...)
	c.must(err)
	c.must(n.pool.Set(block(number))) // what no pod of its own has is nowhere
	return n
}

// iface puts the gateway into a VSI, with what answers for neighbours where it has a MAC.
func (n *calico) iface(vsi *vswitch.VSI, cfg l3.InterfaceConfig, mode arp.Mode) *l3.Interface {
	c := n.c
	c.t.Helper()
	cfg.VNI, cfg.Send = vsi.VNI(), vsi.Send
	var slots vswitch.Slots
	if !cfg.MAC.IsZero() {
		table, err := arp.NewTable(&arp.TableConfig{VNI: vsi.VNI()})
		c.must(err)
		r, err := arp.NewResponder(arp.Config{Table: table, Mode: mode, MAC: cfg.MAC})
		c.must(err)
		cfg.Neighbours, slots.Neighbour = r, r
		c.must(vsi.FDB().Set(cfg.MAC, 0, fdb.Static))
	}
	i, err := n.vrf.NewInterface(cfg)
	c.must(err)
	slots.Gateway, slots.TooBig = i, i.TooBig()
	c.must(vsi.Configure(vswitch.VSIConfig{Slots: slots, RouteIsolated: true}))
	return i
}

// join opens both ways to the other node on a plane.
func (n *calico) join(plane int) {
	c := n.c
	c.t.Helper()
	vsi, err := n.sw.VSI(tunnelVNI+frame.VNI(plane), nil)
	c.must(err)
	var u *underlay.IP
	n.h.Do(func() { u, err = underlay.ListenIP(netip.MustParseAddr(on(plane, n.number)), nil) })
	c.must(err)
	v, err := vtep.New(&vtep.Config{Name: fmt.Sprintf("ipip%d", plane), Type: encap.TypeIPIP}, u)
	c.must(err)
	at, err := vsi.Attach(v, 0)
	c.must(err)
	peer, err := v.AddPeer(netip.AddrPortFrom(netip.MustParseAddr(on(plane, 3-n.number)), 0))
	c.must(err)
	n.peers = append(n.peers, peer)
	n.tunnels = append(n.tunnels, n.iface(vsi, l3.InterfaceConfig{
		Port: at.Dest(0), Tunnel: v, Addresses: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.66.%d.%d/32", n.number, plane))},
	}, arp.Off))

	// Its router has an address and a MAC of its own on the link, beside the node's.
	vsi, err = n.sw.VSI(directVNI+frame.VNI(plane), nil)
	c.must(err)
	link, err := port.OpenPacket(fmt.Sprintf("eth%d", plane), &port.PacketConfig{Namespace: n.h.NS})
	c.must(err)
	_, err = vsi.Attach(link, 0)
	c.must(err)
	n.direct = append(n.direct, n.iface(vsi, l3.InterfaceConfig{
		MAC: frame.MAC{2, 0, 0, 0xca, byte(plane), byte(n.number)}, Addresses: []netip.Prefix{netip.MustParsePrefix(on(plane, 100+n.number) + "/24")},
	}, arp.Off))
}

// learn routes the other node's block to it, by the planes that are not cut.
func (n *calico) learn(o *calico, cut map[int]bool) {
	n.c.t.Helper()
	var ways []l3.Node
	for p := range n.c.planes {
		if cut[p] {
			continue
		}
		ways = append(ways, l3.Node{
			Addr:   netip.MustParseAddr(on(p, o.number)),
			Tunnel: l3.NextHop{Interface: n.tunnels[p], Peer: n.peers[p]},
			Direct: l3.NextHop{Interface: n.direct[p], IP: netip.MustParseAddr(on(p, 100+o.number))},
		})
	}
	n.c.must(n.pool.Set(block(o.number), ways...))
}

// pod starts a pod.
func (n *calico) pod(k int) *netns.Host {
	c := n.c
	c.t.Helper()
	h := c.n.Host(fmt.Sprintf("pod%d-%d", n.number, k))
	tap, err := port.OpenTAP("tap0", &port.DeviceConfig{MTU: 1480, MAC: frame.MAC{2, 0, 0, 0xdd, byte(n.number), byte(k)}, Namespace: h.NS})
	c.must(err)
	if _, err := n.segment.AttachWith(tap, 0, vswitch.AttachConfig{Group: vswitch.GroupIsolated}); err != nil {
		tap.Close()
		c.t.Fatal(err)
	}
	ip := podIP(n.number, k)
	h.Addr("tap0", ip+"/32")
	h.Route("169.254.1.1/32", "dev", "tap0", "scope", "link")
	h.Route("default", "via", "169.254.1.1", "dev", "tap0")
	c.must(n.vrf.Add(l3.Route{Prefix: netip.MustParsePrefix(ip + "/32"), Via: []l3.NextHop{{Interface: n.pods, IP: netip.MustParseAddr(ip)}}}))
	return h
}
