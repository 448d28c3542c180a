package routed

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/internal/onnode"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
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
	// needed with backend host-gw and with DirectRouting, and must be there when the plane starts. Which nodes are on the link follows
	// the addresses of the gateway.
	Direct frame.VNI

	Log *slog.Logger // of a gateway that is no longer as nodes on the link need it; nil = none
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
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// A Shape is a flannel.Shape on a node.
type Shape struct {
	cfg    Config
	misses *vswitch.Events
	links  chan []netip.Prefix
	unlink func() // ends what tells links, nil if nothing does
	said   string // what is wrong with the links
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
	return &Shape{cfg: cfg.full(), links: make(chan []netip.Prefix)}, nil
}

// Open implements [flannel.Shape].
func (s *Shape) Open(n *flannel.Network, own *flannel.Own, generation int) (m flannel.MapperConfig, err error) {
	parts, vni, err := s.parts(n, own, generation)
	if err != nil {
		return m, err
	}
	links, err := s.onLink(n, own)
	if err != nil {
		return m, err
	}
	if generation != 3 {
		s.misses = s.cfg.Node.Switch().Events(frame.EventNeighbourMiss, frame.EventMACMiss)
	}
	if err := onnode.Provide(s.cfg.Node, s.cfg.Owner, parts, s.cfg.Pods); err != nil {
		if s.misses != nil {
			s.misses.Close()
		}
		return m, err
	}
	if isDirect(&n.Backend) {
		s.unlink = s.follow(n, own, links)
	}
	return flannel.MapperConfig{VRF: s.cfg.VRF, VNI: vni, Direct: s.cfg.Direct, Links: links}, nil
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
	t := onnode.Tunnel(c.Tunnel, own, c.AnyPeer)
	if dev := c.device(); dev != "" && t.Underlay == node.UnderlayUDP && t.Device == "" && has(c.addresses(), t.Local) {
		t.Underlay, t.Device = node.UnderlayPacket, dev // they share the address
	}
	g := &node.SegmentGateway{VRF: c.VRF, Gateway: node.Gateway{Addresses: bases}}
	seg := node.Segment{Tunnel: t.Name, Gateway: g}
	switch b.Type {
	case "vxlan":
		t.Type, t.Port, t.GBP, seg.VNI = encap.TypeVXLAN, b.Port, b.GBP, b.VNI
		if seg.VNI == c.Pods {
			return nil, 0, fmt.Errorf("routed: VNI %d of the network is that of the pods: give their segment another one", seg.VNI)
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
func (s *Shape) Misses() flannel.Misses { return onnode.Misses(s.misses) }

// Links implements [flannel.Shape]: they are the prefixes of the gateway in the segment Direct.
func (s *Shape) Links() <-chan []netip.Prefix { return s.links }

// Close implements [flannel.Shape]: it removes from the node what Open has provided, and the rows.
func (s *Shape) Close(lost bool) error {
	if s.unlink != nil {
		s.unlink()
		s.unlink = nil
	}
	if s.misses != nil {
		s.misses.Close()
	}
	return onnode.Remove(s.cfg.Node, s.cfg.Owner)
}
