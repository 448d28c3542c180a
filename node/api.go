package node

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Update changes the configuration under traffic. It calls edit with a copy of the current configuration and applies
// the result as [Node.Apply] does. If edit returns an error, nothing changes.
//
// Methods such as Tunnel and Segment are Updates of one thing each. To add hundreds of segments, use one Update.
func (n *Node) Update(edit func(*Config) error) error {
	if edit == nil {
		return errors.New("node: Update: the edit is nil")
	}
	n.updates.Lock()
	defer n.updates.Unlock()
	return n.update(edit)
}

// update is Update with n.updates held.
func (n *Node) update(edit func(*Config) error) error {
	cfg, provided, err := n.parts()
	if err != nil {
		return err
	}
	if err := edit(cfg); err != nil {
		return err
	}
	cfg = setting.Clone(cfg) // edit may have added slices and pointers that the caller keeps
	if err := (checker{begun: true}).check(cfg); err != nil {
		return err
	}
	return n.changeParts(cfg, provided, checker{begun: true})
}

// Tunnel adds a VTEP and opens its sockets. Errors and tables use the name. Only the Local address of t is needed.
// The node closes the VTEP.
func (n *Node) Tunnel(name string, t Tunnel) (*vtep.VTEP, error) {
	if t.Name != "" && t.Name != name {
		return nil, fmt.Errorf("node: tunnel %q: its Name is %q", name, t.Name)
	}
	t.Name = name
	if err := n.Update(func(c *Config) error { c.Tunnels = append(c.Tunnels, t); return nil }); err != nil {
		return nil, err
	}
	if v := n.Tunnels()[name]; v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("node: tunnel %q: %w", name, net.ErrClosed)
}

// Policy adds a named set of rules for segments and members.
func (n *Node) Policy(p Policy) error {
	return n.Update(func(c *Config) error { c.Policies = append(c.Policies, p); return nil })
}

// A VSI is a segment of a running node. It is valid as long as the node has a segment with its VNI.
type VSI struct {
	n   *Node
	vni frame.VNI
}

// Segment returns the segment with a VNI. If there is none, it adds one with the settings s; nil means defaults. With s,
// an existing segment is an error: use Update to change it.
func (n *Node) Segment(vni frame.VNI, s *Segment) (*VSI, error) {
	if s != nil && s.VNI != 0 && s.VNI != vni {
		return nil, fmt.Errorf("node: segment %d: its VNI is %d", vni, s.VNI)
	}
	if x, err := n.running(vni); err == nil && s == nil {
		return x.handle, nil
	}
	err := n.Update(func(c *Config) error {
		there := index(c).segments[vni] != nil
		if there && s != nil {
			return fmt.Errorf("node: segment %d already exists; use Update to change it", vni)
		}
		if !there {
			x := *cmp.Or(s, &Segment{})
			x.VNI = vni
			c.Segments = append(c.Segments, x)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	x, err := n.running(vni)
	if err != nil {
		return nil, err
	}
	return x.handle, nil
}

// running returns the running segment with a VNI.
func (n *Node) running(vni frame.VNI) (*segment, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.segments[vni]; s != nil && !n.closed {
		return s, nil
	}
	return nil, gone(vni)
}

// gone is the error for a segment that does not exist.
func gone(vni frame.VNI) error {
	return fmt.Errorf("node: segment %d does not exist: %w", vni, net.ErrClosed)
}

// VNI returns the segment's number.
func (v *VSI) VNI() frame.VNI { return v.vni }

// Switch returns the VSI of the switch, with the FDB, attachments and counters.
func (v *VSI) Switch() (*vswitch.VSI, error) {
	s, err := v.n.running(v.vni)
	if err != nil {
		return nil, err
	}
	return s.vsi, nil
}

// Update changes the settings of the segment as [Node.Update] does.
func (v *VSI) Update(edit func(*Segment) error) error {
	if edit == nil {
		return fmt.Errorf("node: segment %d: Update: the edit is nil", v.vni)
	}
	return v.n.Update(v.edit(func(_ *Config, s *Segment) error { return edit(s) }))
}

// edit returns a change of the segment with settings s.
func (v *VSI) edit(change func(c *Config, s *Segment) error) func(*Config) error {
	return func(c *Config) error {
		s := index(c).segments[v.vni]
		if s == nil {
			return gone(v.vni)
		}
		return change(c, s)
	}
}

// Join adds the segment to a tunnel, and adds peers to its flood list there. The node joins a multicast group among
// them.
func (v *VSI) Join(t *vtep.VTEP, peers ...netip.Addr) error {
	list := make([]netip.AddrPort, len(peers))
	for i, a := range peers {
		list[i] = netip.AddrPortFrom(a, 0)
	}
	return v.JoinAddrPort(t, list...)
}

// JoinAddrPort is Join with a UDP port for each peer; 0 keeps the port of the peer. The ports are in the PeerSettings of
// the tunnel and so apply to all its segments. For a peer that has joined already, only the port changes.
func (v *VSI) JoinAddrPort(t *vtep.VTEP, peers ...netip.AddrPort) error {
	if t == nil {
		return errors.New("node: Join: the tunnel is nil")
	}
	return v.n.Update(v.edit(func(c *Config, s *Segment) error {
		if own := v.n.Tunnels()[t.Name()]; own != nil && own != t {
			return fmt.Errorf("node: segment %d: Join: this is not the node's tunnel %q", v.vni, t.Name())
		}
		s.Tunnel, s.Flood, s.Hub, s.Tunnels = "", nil, false, s.in()
		in := find(s.Tunnels, func(x *SegmentTunnel) bool { return x.Tunnel == t.Name() })
		if in == nil {
			s.Tunnels = append(s.Tunnels, SegmentTunnel{Tunnel: t.Name()})
			in = &s.Tunnels[len(s.Tunnels)-1]
		}
		settings := index(c).tunnels[t.Name()]
		for _, p := range peers {
			if p.Port() == 0 || !slices.Contains(in.Flood, p.Addr()) {
				in.Flood = append(in.Flood, p.Addr())
			}
			if settings != nil {
				settings.setPort(p)
			}
		}
		return nil
	}))
}

// setPort sets the UDP port of a peer if it differs from the port of the tunnel.
func (t *Tunnel) setPort(p netip.AddrPort) {
	there := find(t.PeerSettings, func(x *PeerSetting) bool { return t.zoned(x.Address) == t.zoned(p.Addr()) })
	switch {
	case p.Port() == 0:
	case there != nil:
		there.Port = p.Port()
	case p.Port() != t.port():
		t.PeerSettings = append(t.PeerSettings, PeerSetting{PeerConfig: vtep.PeerConfig{Address: p.Addr(), Port: p.Port()}})
	}
}

// Add makes a port of the program, such as a TAP or a [port.Pipe], a member of the segment with the settings m; nil
// means an untagged member. The name of the port must be unique. A port may be a member of several segments with
// different VLANs. A port with the name of one that has failed takes its place, in all segments; without m, as the same
// member of this one. A TAP or TUN opened without an MTU gets the MTU that fits the tunnels of the segment.
//
// The node closes the port when the node is closed or the port leaves its last segment. On an error the program still
// owns the port, which may be closed already.
func (v *VSI) Add(p vswitch.Port, m *Member) error {
	switch {
	case absent.Is(p):
		return fmt.Errorf("node: segment %d: Add: the port is %#v", v.vni, p)
	case !reflect.TypeOf(p).Comparable():
		return fmt.Errorf("node: segment %d: Add: a port of type %T is not comparable; use a pointer", v.vni, p)
	}
	if _, ok := p.(vswitch.Tunnel); ok {
		return fmt.Errorf("node: segment %d: Add: %q is a tunnel; use Join", v.vni, nameOf(p))
	}
	n, name, fresh := v.n, nameOf(p), false
	n.updates.Lock()
	defer n.updates.Unlock()
	n.mu.Lock()
	n.dropFailed() // one with this name may be among them
	n.mu.Unlock()
	err := n.update(v.edit(func(c *Config, s *Segment) error {
		switch there := index(c).ports[name]; {
		case there != nil && n.gone(there):
			x, ok := p.(vswitch.Offloader)
			there.IP = ok && x.Offloads()&frame.IPOnly != 0
			n.own[name], fresh = p, true
			if was := s.member(name); was != nil && m == nil {
				return nil
			}
			s.Members = slices.DeleteFunc(s.Members, func(x Member) bool { return x.Port == name })
		case there != nil && n.own[name] != p:
			return fmt.Errorf("node: segment %d: Add: another port has the name %q; Name must be unique", v.vni, name)
		case there == nil:
			x, ok := p.(vswitch.Offloader)
			c.Ports = append(c.Ports, Port{Name: name, Type: PortOwn, IP: ok && x.Offloads()&frame.IPOnly != 0})
			n.own[name], fresh = p, true
		}
		x := *cmp.Or(m, &Member{})
		x.Port = name
		s.Members = append(s.Members, x)
		return nil
	}))
	if err != nil && fresh {
		n.disown(name, err)
	}
	return err
}

// disown gives a port back that Add has not added. The old configuration may have it, in the place of one that had failed.
func (n *Node) disown(name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d := n.ports[name]; d != nil {
		n.goesDown(&d.cfg, d, err)
		n.closePort(name)
	}
	delete(n.own, name)
}

// Remove removes a port from the segment. It closes a port that leaves its last segment.
func (v *VSI) Remove(p vswitch.Port) error {
	if absent.Is(p) {
		return fmt.Errorf("node: segment %d: Remove: the port is %#v", v.vni, p)
	}
	name := nameOf(p)
	return v.n.Update(v.edit(func(c *Config, s *Segment) error {
		if s.member(name) == nil {
			return fmt.Errorf("node: segment %d: port %q is not a member", v.vni, name)
		}
		if !v.n.is(name, p) {
			return fmt.Errorf("node: segment %d: this is not the member %q", v.vni, name)
		}
		s.Members = slices.DeleteFunc(s.Members, func(m Member) bool { return m.Port == name })
		for _, x := range c.Segments {
			if x.member(name) != nil {
				return nil
			}
		}
		c.Ports = slices.DeleteFunc(c.Ports, func(p Port) bool { return p.Name == name && p.Type == PortOwn })
		return nil
	}))
}

// is reports whether p is the port with a name, as opened or as the switch has it. A port that has failed matches by
// name.
func (n *Node) is(name string, p vswitch.Port) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.ports[name]
	return d == nil || p == d.port || any(p) == any(d.raw)
}

// Gateway adds an interface in a VRF to the segment, and the VRF if it does not exist. If g has no MAC, the interface gets
// a random one, unless the segment carries IP without Ethernet.
func (v *VSI) Gateway(vrf string, g Gateway) error {
	return v.n.Update(v.edit(func(c *Config, s *Segment) error {
		if s.Gateway != nil {
			return fmt.Errorf("node: segment %d already has a gateway; use Update to change it", v.vni)
		}
		if g.MAC.IsZero() && !s.bare(index(c)) {
			g.MAC = frame.RandomMAC()
		}
		s.Gateway = &SegmentGateway{VRF: vrf, Gateway: g}
		if !slices.ContainsFunc(c.VRFs, func(x VRF) bool { return x.Name == vrf }) {
			c.VRFs = append(c.VRFs, VRF{Name: vrf})
		}
		return nil
	}))
}

func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// nameOf returns the name of a port, or its type.
func nameOf(p any) string {
	if x, ok := p.(interface{ Name() string }); ok {
		return x.Name()
	}
	return fmt.Sprintf("%T", p)
}
