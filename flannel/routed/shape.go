package routed

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Defaults of a Config.
const (
	DefaultName = "flannel"
	DefaultPods = frame.VNI(0xfffffe)
	DefaultIPIP = frame.VNI(0xfffffd)
)

// Config says how the network becomes part of a node. Only Node is needed.
type Config struct {
	Node *node.Node

	Owner string // of what is provided and of the rows, as in the flannel.PlaneConfig; default "flannel"
	VRF   string // default "flannel"

	// Tunnel has settings of the tunnel that the network does not have, such as those of sockets. Its Name is "flannel" by
	// default, its Local and Local6 are the public addresses. If those are the addresses of the gateway in the segment
	// Direct, it is over packet sockets on the device of that.
	Tunnel  node.Tunnel
	AnyPeer bool // accept packets from anybody, as flanneld does

	Pods    frame.VNI // segment of the pods; default 16777214
	PodsMAC frame.MAC // of the gateway there; default that of the lease, without vxlan a random one
	IPIP    frame.VNI // segment of the tunnel with backend ipip or udp; default 16777213

	// Direct is the segment in which nodes on our link are neighbours, and its gateway in the VRF has our public addresses. It is
	// needed with backend host-gw and with DirectRouting, and must be there when the plane starts.
	Direct frame.VNI
}

// Check returns the errors in the settings as [setting.Errors].
func (c *Config) Check() error {
	w := setting.Of("routed: Config")
	if c.Node == nil {
		w.Wrong("Node", nil, "it is needed")
	}
	for _, v := range []struct {
		name string
		vni  frame.VNI
	}{{"Pods", c.Pods}, {"IPIP", c.IPIP}, {"Direct", c.Direct}} {
		if !v.vni.Valid() {
			w.Want(v.name, v.vni, "1 to %d, or 0", frame.MaxVNI)
		}
	}
	if f := c.full(); f.Pods == f.Direct || f.Pods == f.IPIP || f.IPIP == f.Direct {
		w.Wrong("Pods", f.Pods, "Pods, IPIP and Direct are different segments")
	}
	if c.PodsMAC.IsGroup() {
		w.Want("PodsMAC", c.PodsMAC, "the MAC of one host")
	}
	return w.Err()
}

func (c Config) full() Config {
	c.Owner = cmp.Or(c.Owner, flannel.DefaultOwner)
	c.VRF = cmp.Or(c.VRF, DefaultName)
	c.Tunnel.Name = cmp.Or(c.Tunnel.Name, DefaultName)
	c.Pods = cmp.Or(c.Pods, DefaultPods)
	c.IPIP = cmp.Or(c.IPIP, DefaultIPIP)
	return c
}

// A Shape is a flannel.Shape on a node.
type Shape struct {
	cfg    Config
	misses *vswitch.Events
}

var _ flannel.Shape = (*Shape)(nil)

// New makes a Shape. It touches the node when it is opened.
func New(cfg *Config) (*Shape, error) {
	if cfg == nil {
		cfg = new(Config)
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Shape{cfg: cfg.full()}, nil
}

// Open implements [flannel.Shape].
func (s *Shape) Open(n *flannel.Network, own *flannel.Own, generation int) (m flannel.MapperConfig, err error) {
	parts, vni, err := s.parts(n, own, generation)
	if err != nil {
		return m, err
	}
	links, err := s.links(n, own)
	if err != nil {
		return m, err
	}
	if generation != 3 {
		s.misses = s.cfg.Node.Switch().Events(frame.EventNeighbourMiss, frame.EventMACMiss)
	}
	if err := s.cfg.Node.Provide(s.cfg.Owner, parts); err != nil {
		if s.misses != nil {
			s.misses.Close()
		}
		return m, err
	}
	return flannel.MapperConfig{VRF: s.cfg.VRF, VNI: vni, Direct: s.cfg.Direct, Links: links}, nil
}

// links returns the prefixes of the gateway in the segment Direct, which nodes on our link send to without the tunnel,
// whether we send to them like that or not.
func (s *Shape) links(n *flannel.Network, own *flannel.Own) ([]netip.Prefix, error) {
	c, b := &s.cfg, &n.Backend
	switch {
	case b.Type != "host-gw" && !b.DirectRouting:
		return nil, nil
	case c.Direct == 0:
		return nil, fmt.Errorf("routed: direct: no segment: one is needed with %s, since nodes on our link send without a tunnel", how(b))
	}
	list := c.addresses()
	for _, e := range []flannel.End{own.IPv4, own.IPv6} {
		if e.PublicIP.IsValid() && !has(list, e.PublicIP) {
			return nil, fmt.Errorf("routed: direct: segment %d: a gateway in the VRF %q with the address %v is needed with %s, since nodes on our link send to it", c.Direct, c.VRF, e.PublicIP, how(b))
		}
	}
	for i := range list {
		list[i] = list[i].Masked()
	}
	return list, nil
}

// addresses returns those of the gateway in the segment Direct, nil without one.
func (c *Config) addresses() (list []netip.Prefix) {
	for _, i := range c.Node.Interfaces() {
		if c.Direct != 0 && i.VNI() == c.Direct && i.VRFName() == c.VRF {
			list = i.Config().Addresses
		}
	}
	return list
}

func has(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Addr() == a })
}

// link returns the device of the packet port in the segment Direct, "" without one.
func (c *Config) link() string {
	cfg := c.Node.Config()
	for _, g := range cfg.Segments {
		for _, m := range g.Members {
			if g.VNI == c.Direct && m.VLAN == 0 && slices.ContainsFunc(cfg.Ports, func(p node.Port) bool { return p.Name == m.Port && p.Type == node.PortPacket }) {
				return m.Port
			}
		}
	}
	return ""
}

// how is what makes nodes send without a tunnel.
func how(b *flannel.Backend) string {
	if b.Type == "host-gw" {
		return "backend host-gw"
	}
	return "DirectRouting"
}

// parts returns what a node needs for a lease, and the segment of the tunnel, 0 without one.
func (s *Shape) parts(n *flannel.Network, own *flannel.Own, generation int) (*node.Config, frame.VNI, error) {
	c, b := &s.cfg, &n.Backend
	mac := cmp.Or(own.IPv4.MAC, own.IPv6.MAC)
	gateway := node.Gateway{MAC: cmp.Or(c.PodsMAC, mac)}
	if gateway.MAC.IsZero() {
		gateway.MAC = frame.RandomMAC()
	}
	var bases []netip.Prefix // the node's address in the network, as flanneld has it on its device
	for _, x := range []struct{ subnet, network netip.Prefix }{{own.Subnet.IPv4, n.IPv4.Network}, {own.Subnet.IPv6, n.IPv6.Network}} {
		if !x.subnet.IsValid() {
			continue
		}
		base := x.subnet.Addr()
		gateway.Addresses = append(gateway.Addresses, netip.PrefixFrom(base.Next(), x.subnet.Bits()))
		bits := base.BitLen()
		if generation != 3 {
			bits = x.network.Bits() // all of the network is behind the tunnel, one packet after the other
		}
		bases = append(bases, netip.PrefixFrom(base, bits))
	}
	parts := &node.Config{
		VRFs:     []node.VRF{{Name: c.VRF}},
		Segments: []node.Segment{{VNI: c.Pods, Gateway: &node.SegmentGateway{VRF: c.VRF, Gateway: gateway}}},
	}
	if b.Type == "host-gw" {
		return parts, 0, nil
	}
	t := c.Tunnel
	if !t.Local.IsValid() {
		t.Local, t.Local6 = own.Underlay()
	}
	if dev := c.link(); dev != "" && t.Underlay == node.UnderlayUDP && t.Device == "" && has(c.addresses(), t.Local) {
		t.Underlay, t.Device = node.UnderlayPacket, dev // they share the address
	}
	if t.Peers = vtep.ListedPerVNI; c.AnyPeer {
		t.Peers = vtep.AnyPeer
	}
	g := &node.SegmentGateway{VRF: c.VRF, Gateway: node.Gateway{Addresses: bases}}
	seg := node.Segment{Tunnel: t.Name, Gateway: g}
	switch b.Type {
	case "vxlan":
		t.Type, t.Port, t.GBP, seg.VNI = encap.TypeVXLAN, b.Port, b.GBP, b.VNI
		if seg.VNI == c.Pods || seg.VNI == c.Direct {
			return nil, 0, fmt.Errorf("routed: VNI %d of the network is that of another segment here", seg.VNI)
		}
		g.MAC, g.NoAsk = mac, true
		if own.IPv4.MAC.IsHost() && own.IPv6.MAC.IsHost() && own.IPv4.MAC != own.IPv6.MAC {
			g.MAC, g.VTEPMAC = own.IPv6.MAC, own.IPv4.MAC // it takes what comes to either
		}
		seg.NoFlood, seg.NoLearn = vswitch.Broadcast|vswitch.UnknownUnicast|vswitch.Multicast, !b.Learning
		seg.ForwardPinned = true // packets of both families have one source MAC, and come from two addresses
		if generation != 3 {
			seg.Neighbours = &node.Neighbours{Config: arp.Config{Mode: arp.Suppress, Miss: true}}
			seg.TellMisses = generation == 1
		}
	case "ipip":
		t.Type, seg.VNI = encap.TypeIPIP, c.IPIP
	case "udp":
		t.Type, t.Port, seg.VNI = encap.TypeFOU, b.Port, c.IPIP
	default:
		return nil, 0, b.Supported()
	}
	parts.Tunnels, parts.Segments = []node.Tunnel{t}, append(parts.Segments, seg)
	return parts, seg.VNI, nil
}

// Program implements [control.Programmer].
func (s *Shape) Program(owner string, u control.Update) error { return s.cfg.Node.Program(owner, u) }

// Routes implements [flannel.Shape]: there are none.
func (s *Shape) Routes(flannel.RouteUpdate) error { return nil }

// Misses implements [flannel.Shape].
func (s *Shape) Misses() flannel.Misses {
	if s.misses == nil {
		return nil
	}
	return s.misses
}

// Close implements [flannel.Shape]: it removes from the node what Open has provided, and the rows.
func (s *Shape) Close(lost bool) error {
	if s.misses != nil {
		s.misses.Close()
	}
	err := s.cfg.Node.Program(s.cfg.Owner, control.Update{Snapshot: true})
	if err == nil {
		err = s.cfg.Node.Provide(s.cfg.Owner, nil)
	}
	if errors.Is(err, net.ErrClosed) { // the node has ended first
		return nil
	}
	return err
}
