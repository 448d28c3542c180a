package hosted

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/internal/onnode"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/hostnet"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// Config says how the network becomes part of a host. Only Node is needed, and Link with backend host-gw or DirectRouting.
type Config struct {
	Node *node.Node

	Owner  string // of what is provided and of the rows, as in the flannel.PlaneConfig; default "flannel"
	Device string // name of the TAP; default "flannel." and the VNI, of the TUN of backend udp "flannel0"

	// Persistent leaves the TAP with its address and the routes when the plane ends or the process is killed, and takes what
	// a former process has left: no route is missing at any time. When the lease is lost, they go, and so does a device that
	// a former process has left for another VNI or backend.
	Persistent bool

	// Namespace is the network namespace of TAP and Link, as in port.DeviceConfig; default that of the program.
	Namespace string

	// Tunnel has settings of the tunnel that the network does not have, such as those of sockets. Its Name is "flannel" by
	// default, its Local and Local6 are the public addresses.
	Tunnel  node.Tunnel
	AnyPeer bool // accept packets from anybody, as flanneld does

	Link    string // the interface on which other nodes are, for routes without a tunnel
	LinkMTU int    // MTU of that interface; 0 = 1500

	Log *slog.Logger // of what had to be put back; nil = none
}

// Check returns the errors in the settings as [setting.Errors].
func (c *Config) Check() error {
	w := setting.Of("hosted: Config")
	if c.Node == nil {
		w.Wrong("Node", nil, "it is needed")
	}
	if c.LinkMTU != 0 && (c.LinkMTU < 576 || c.LinkMTU > 65535) {
		w.Want("LinkMTU", c.LinkMTU, "576 to 65535, or 0 for 1500")
	}
	return w.Err()
}

// A Shape is a flannel.Shape on a host.
type Shape struct {
	cfg     Config
	network *flannel.Network
	tap     *hostnet.Host   // nil with host-gw
	link    *hostnet.Host   // nil without routes of its own
	former  *hostnet.Host   // the link, while it may have routes of a former process that sent without a tunnel
	settled bool            // what a former process has left on other devices is gone
	whole   []hostnet.Route // of the networks into the TAP, where the host has no route for each lease
	misses  *vswitch.Events // nil in generation 3
	said    map[string]bool // by check
	waits   string          // what Routes has said of routes that wait
}

var _ flannel.Shape = (*Shape)(nil)

// New makes a Shape. It touches node and host when it is opened.
func New(cfg *Config) (*Shape, error) {
	if cfg == nil {
		cfg = new(Config)
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	c := *cfg
	c.Owner = cmp.Or(c.Owner, flannel.DefaultOwner)
	c.Tunnel.Name = cmp.Or(c.Tunnel.Name, "flannel")
	c.LinkMTU = cmp.Or(c.LinkMTU, 1500)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Shape{cfg: c}, nil
}

// MTU returns the MTU of pods in a network.
func (s *Shape) MTU(n *flannel.Network) int { return n.MTU(s.cfg.LinkMTU) }

// Open implements [flannel.Shape].
func (s *Shape) Open(n *flannel.Network, own *flannel.Own, generation int) (m flannel.MapperConfig, err error) {
	c, b := &s.cfg, &n.Backend
	s.network = n
	m = flannel.MapperConfig{Host: true, VNI: b.VNI}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(true))
		} else if c.Persistent && c.Namespace == "" {
			s.removeFormer()
		}
	}()
	if b.Type == "host-gw" || b.DirectRouting {
		if c.Link == "" {
			return m, errors.New("hosted: Config.Link: it is needed for routes without a tunnel")
		}
		if s.link, err = hostnet.Open(&hostnet.Config{Device: c.Link, Namespace: c.Namespace, Uplink: true, Repaired: s.repaired}); err != nil {
			return m, err
		}
	} else if c.Link != "" {
		s.former, _ = hostnet.Open(&hostnet.Config{Device: c.Link, Namespace: c.Namespace, Uplink: true})
	}
	if b.Type == "host-gw" {
		return m, nil
	}
	var parts *node.Config
	switch b.Type {
	case "vxlan":
		c.Device = cmp.Or(c.Device, fmt.Sprintf("flannel.%d", b.VNI))
		parts, err = s.parts(n, own, generation)
	case "udp":
		c.Device = cmp.Or(c.Device, "flannel0")
		parts, m = s.partsUDP(n, own), flannel.MapperConfig{VRF: c.Owner, VNI: tunnelVNI}
	default:
		err = fmt.Errorf("hosted: backend %q: must be one of vxlan, host-gw, udp: %w", b.Type, errors.ErrUnsupported)
	}
	if err != nil {
		return m, err
	}
	if generation != 3 {
		s.misses = c.Node.Switch().Events(frame.EventNeighbourMiss, frame.EventMACMiss)
	}
	if err := c.free(); err != nil {
		return m, err
	}
	if err := onnode.Provide(c.Node, c.Owner, parts, 0); err != nil {
		return m, err
	}
	h := &hostnet.Config{Device: c.Device, Namespace: c.Namespace, Sole: c.Persistent, MTU: s.MTU(n), Repaired: s.repaired}
	for _, x := range []struct{ subnet, network netip.Prefix }{{own.Subnet.IPv4, n.IPv4.Network}, {own.Subnet.IPv6, n.IPv6.Network}} {
		if !x.subnet.IsValid() {
			continue
		}
		base := x.subnet.Addr()
		h.Addresses = append(h.Addresses, netip.PrefixFrom(base, base.BitLen()))
		if generation != 3 || b.Type == "udp" {
			s.whole = append(s.whole, hostnet.Route{Prefix: x.network})
		}
	}
	if s.tap, err = hostnet.Open(h); err != nil {
		return m, err
	}
	if generation == 3 && b.Type == "vxlan" {
		return m, nil // what is left is right until leases say otherwise
	}
	return m, s.routes(flannel.RouteUpdate{Snapshot: true})
}

// free returns an error if there is a device with the name that is no TAP or TUN, such as that of flanneld, whose port is taken, too.
func (c *Config) free() error {
	if _, err := net.InterfaceByName(c.Device); c.Namespace != "" || err != nil {
		return nil
	}
	if _, err := os.Stat("/sys/class/net/" + c.Device + "/tun_flags"); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if b, _ := os.ReadFile("/sys/class/net/" + c.Device + "/uevent"); !bytes.Contains(b, []byte("DEVTYPE=vxlan")) {
		return fmt.Errorf("hosted: device %s: is another one of this host: must be a TAP, or a name that is free", c.Device)
	}
	return fmt.Errorf("hosted: there is a device %s that is not a TAP: stop flanneld, and ip link delete %[1]s", c.Device)
}

// parts returns what a node needs for a lease.
func (s *Shape) parts(n *flannel.Network, own *flannel.Own, generation int) (*node.Config, error) {
	c, b := &s.cfg, &n.Backend
	mac := cmp.Or(own.IPv4.MAC, own.IPv6.MAC)
	if six := own.IPv6.MAC; !six.IsZero() && six != mac {
		return nil, fmt.Errorf("hosted: the lease has the MACs %v and %v: the plane must have OneMAC", mac, six)
	}
	t := onnode.Tunnel(c.Tunnel, own, c.AnyPeer)
	t.Type, t.Port, t.GBP = encap.TypeVXLAN, b.Port, b.GBP
	return &node.Config{
		Tunnels: []node.Tunnel{t},
		Ports: []node.Port{{Name: c.Device, Type: node.PortTAP,
			DeviceConfig: port.DeviceConfig{MTU: s.MTU(n), MAC: mac, Namespace: c.Namespace, Persistent: c.Persistent}}},
		Segments: []node.Segment{{
			VNI: b.VNI, Tunnel: t.Name, Members: []node.Member{{Port: c.Device}},
			FDB: []node.FDB{{MAC: mac, Port: c.Device}},
			VSIConfig: vswitch.VSIConfig{
				NoFlood: vswitch.Broadcast | vswitch.UnknownUnicast | vswitch.Multicast, NoLearn: !b.Learning, ForwardPinned: true,
				TellMisses: generation == 1,
			},
			Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Suppress, Miss: generation != 3}},
		}},
	}, nil
}

// Segments of the backend udp.
const (
	hostVNI   = frame.VNI(0xfffffe)
	tunnelVNI = frame.VNI(0xfffffd)
)

// partsUDP returns what a node needs with the backend udp: the host is behind a TUN, and the switch routes between that
// and the tunnel.
func (s *Shape) partsUDP(n *flannel.Network, own *flannel.Own) *node.Config {
	c := &s.cfg
	t := onnode.Tunnel(c.Tunnel, own, c.AnyPeer)
	t.Type, t.Port = encap.TypeFOU, n.Backend.Port
	vrf := node.VRF{Name: c.Owner}
	for _, p := range []netip.Prefix{own.Subnet.IPv4, own.Subnet.IPv6} {
		if p.IsValid() {
			vrf.Routes = append(vrf.Routes, node.Route{Prefix: p, Via: []node.Hop{{Segment: hostVNI}}})
		}
	}
	gateway := &node.SegmentGateway{VRF: vrf.Name}
	return &node.Config{
		Tunnels: []node.Tunnel{t},
		Ports: []node.Port{{Name: c.Device, Type: node.PortTUN,
			DeviceConfig: port.DeviceConfig{MTU: s.MTU(n), Namespace: c.Namespace, Persistent: c.Persistent}}},
		Segments: []node.Segment{
			{VNI: hostVNI, Members: []node.Member{{Port: c.Device}}, Gateway: gateway},
			{VNI: tunnelVNI, Tunnel: t.Name, Gateway: gateway},
		},
		VRFs: []node.VRF{vrf},
	}
}

// repaired says what others had changed.
func (s *Shape) repaired(r hostnet.Repair) { s.cfg.Log.Warn("hosted: put back", "what", r.String()) }

// Program implements [control.Programmer].
func (s *Shape) Program(owner string, u control.Update) error {
	if s.network.Backend.Type == "host-gw" {
		return nil // it has no rows
	}
	return s.cfg.Node.Program(owner, u)
}

// Routes implements [flannel.Shape]. Routes that the kernel refuses wait in hostnet, which tries them again: they are said once, and
// no reason to pass all others again.
func (s *Shape) Routes(u flannel.RouteUpdate) error {
	err := s.routes(u)
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != s.waits {
		s.cfg.Log.Warn("hosted: routes wait", "err", text)
	}
	s.waits = text
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (s *Shape) routes(u flannel.RouteUpdate) error {
	add, direct := split(u.Add)
	del, indirect := split(u.Del)
	if u.Snapshot {
		add = append(add, s.whole...)
		if s.tap != nil {
			del = slices.Collect(s.tap.Routes())
		}
	}
	is := map[netip.Prefix]bool{}
	for _, r := range direct {
		is[r.Prefix] = true
	}
	var first []hostnet.Route // the kernel takes those of the link once these have gone
	for _, r := range del {
		if is[r.Prefix] {
			first = append(first, r)
		}
	}
	if s.tap != nil && len(first) > 0 {
		s.tap.UpdateRoutes(nil, first)
	}
	err := s.dropFormer(u.Snapshot)
	err = errors.Join(err, change(s.link, u.Snapshot, direct, indirect), change(s.tap, u.Snapshot, add, del))
	if u.Snapshot {
		s.check()
	}
	return err
}

// dropFormer removes the routes that a former process has left on the link or other devices, right before a snapshot replaces them.
func (s *Shape) dropFormer(snapshot bool) (err error) {
	if s.former != nil && snapshot {
		err = errors.Join(s.former.SetRoutes(), s.former.Close())
		s.former = nil
	}
	if c := &s.cfg; c.Persistent && snapshot && !s.settled { // its link or device had another name
		s.settled = true
		err = errors.Join(err, hostnet.Forget(c.Namespace, []netip.Prefix{s.network.IPv4.Network, s.network.IPv6.Network}, c.Device, c.Link))
	}
	return err
}

// check says what keeps packets from passing, such as foreign routes that come before ours, unless it did so at the last snapshot.
func (s *Shape) check() {
	is := map[string]bool{}
	for _, h := range []*hostnet.Host{s.tap, s.link} {
		if h == nil {
			continue
		}
		for _, wrong := range h.Check() {
			text := wrong.Error()
			if is[text] = true; !s.said[text] {
				s.cfg.Log.Warn("hosted: packets may not pass", "err", text)
			}
		}
	}
	s.said = is
}

// change changes the routes into a device, if there is one.
func change(h *hostnet.Host, snapshot bool, add, del []hostnet.Route) error {
	switch {
	case h == nil || !snapshot && len(add)+len(del) == 0:
		return nil
	case snapshot:
		return h.SetRoutes(add...)
	}
	return h.UpdateRoutes(add, del)
}

// split returns the routes into the TAP, and those into the link.
func split(list []flannel.Route) (tap, link []hostnet.Route) {
	for _, r := range list {
		x := hostnet.Route{Prefix: r.Prefix, Via: r.Via, Metric: metric(r.Prefix)}
		if r.Direct {
			link = append(link, x)
			continue
		}
		x.OnLink, x.MAC = true, r.MAC
		tap = append(tap, x)
	}
	return tap, link
}

// metric returns that of the route to a subnet: 1 to 1024 for IPv4, by the number of the subnet. Before Linux adds a next hop, it
// looks for the same one among those with its device, source and metric, and with one metric that are all (fib_find_info in
// net/ipv4/fib_semantics.c of 6.18).
func metric(p netip.Prefix) int {
	if !p.Addr().Is4() {
		return 0
	}
	b := p.Addr().As4()
	return 1 + int(binary.BigEndian.Uint32(b[:])>>(32-p.Bits())&1023)
}

// Links implements [flannel.Shape]: nobody follows them here.
func (s *Shape) Links() <-chan []netip.Prefix { return nil }

// Misses implements [flannel.Shape].
func (s *Shape) Misses() flannel.Misses { return onnode.Misses(s.misses) }

// Close implements [flannel.Shape]: routes, addresses and the TAP go, unless they are Persistent and the lease is not lost.
func (s *Shape) Close(lost bool) (err error) {
	keep := s.cfg.Persistent && !lost
	for _, h := range []*hostnet.Host{s.tap, s.link} {
		switch {
		case h == nil:
		case keep:
			h.Leave()
		case s.cfg.Persistent && h == s.tap: // once the node has closed it
			defer func() { err = errors.Join(err, h.Delete()) }()
		default:
			err = errors.Join(err, h.Close())
		}
	}
	if s.former != nil {
		s.former.Leave()
	}
	s.tap, s.link, s.former = nil, nil, nil
	if s.misses != nil {
		s.misses.Close()
		s.misses = nil
	}
	return errors.Join(err, onnode.Remove(s.cfg.Node, s.cfg.Owner))
}
