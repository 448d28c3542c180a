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

// Update changes the configuration under traffic: edit gets a copy of the one there is, and
// what it leaves is applied, as by [Node.Apply]. An error of edit changes nothing. Several
// callers take turns.
//
// The calls below are Updates of one thing each; who makes hundreds of segments makes them in
// one.
func (n *Node) Update(edit func(*Config) error) error {
	if edit == nil {
		return errors.New("node: Update: the edit is nil")
	}
	n.updates.Lock()
	defer n.updates.Unlock()
	return n.update(edit)
}

// update is Update; n.updates is held.
func (n *Node) update(edit func(*Config) error) error {
	n.mu.Lock()
	cfg, closed := setting.Clone(n.cfg), n.closed
	n.mu.Unlock()
	if closed {
		return fmt.Errorf("node: Update: %w", net.ErrClosed)
	}
	if err := edit(cfg); err != nil {
		return err
	}
	cfg = setting.Clone(cfg) // edit may have put in lists and pointers that the caller has too
	if err := (checker{begun: true}).check(cfg); err != nil {
		return err
	}
	return n.change(cfg)
}

// Tunnel adds a VTEP and opens its sockets. Its name is that of messages, and of the device in
// tables; the zero Tunnel lacks only a Local address.
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

// Policy adds rules under a name, for segments and members.
func (n *Node) Policy(p Policy) error {
	return n.Update(func(c *Config) error { c.Policies = append(c.Policies, p); return nil })
}

// A VSI is a segment of a running node. It is the same one for as long as there is a segment of
// its VNI.
type VSI struct {
	n   *Node
	vni frame.VNI
}

// Segment returns the segment of a VNI, adding it with the settings s if there is none; nil is
// all defaults. One that is there is changed by Update.
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
			return fmt.Errorf("node: segment %d is there; Update changes it", vni)
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

// running returns the segment of a VNI as it runs.
func (n *Node) running(vni frame.VNI) (*segment, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.segments[vni]; s != nil && !n.closed {
		return s, nil
	}
	return nil, gone(vni)
}

// gone is the error of a segment that there is no longer.
func gone(vni frame.VNI) error {
	return fmt.Errorf("node: segment %d is gone: %w", vni, net.ErrClosed)
}

// VNI returns the segment's number.
func (v *VSI) VNI() frame.VNI { return v.vni }

// Switch returns the segment as the switch has it: its FDB, attachments and counters.
func (v *VSI) Switch() (*vswitch.VSI, error) {
	s, err := v.n.running(v.vni)
	if err != nil {
		return nil, err
	}
	return s.vsi, nil
}

// Update changes the settings of the segment: see [Node.Update].
func (v *VSI) Update(edit func(*Segment) error) error {
	if edit == nil {
		return fmt.Errorf("node: segment %d: Update: the edit is nil", v.vni)
	}
	return v.n.Update(v.edit(func(_ *Config, s *Segment) error { return edit(s) }))
}

// edit returns a change that is about the segment, s its settings.
func (v *VSI) edit(change func(c *Config, s *Segment) error) func(*Config) error {
	return func(c *Config) error {
		s := index(c).segments[v.vni]
		if s == nil {
			return gone(v.vni)
		}
		return change(c, s)
	}
}

// Join puts the segment into a tunnel, or adds peers to those that it has there. They get what
// is flooded; a multicast group stands for all that are in it, and is joined.
func (v *VSI) Join(t *vtep.VTEP, peers ...netip.Addr) error {
	list := make([]netip.AddrPort, len(peers))
	for i, a := range peers {
		list[i] = netip.AddrPortFrom(a, 0)
	}
	return v.JoinAddrPort(t, list...)
}

// JoinAddrPort is Join of peers with UDP ports of their own, which the tunnel's PeerSettings have
// then, for all its segments, and all that changes of a peer that is joined already. Port 0 leaves a
// peer's port as it is.
func (v *VSI) JoinAddrPort(t *vtep.VTEP, peers ...netip.AddrPort) error {
	if t == nil {
		return errors.New("node: Join: the tunnel is nil")
	}
	return v.n.Update(v.edit(func(c *Config, s *Segment) error {
		if own := v.n.Tunnels()[t.Name()]; own != nil && own != t {
			return fmt.Errorf("node: segment %d: Join: the node's tunnel %q is another one", v.vni, t.Name())
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
				settings.aim(p)
			}
		}
		return nil
	}))
}

// aim gives a peer a port of its own, if it is not that of all.
func (t *Tunnel) aim(p netip.AddrPort) {
	there := find(t.PeerSettings, func(x *PeerSetting) bool { return t.zoned(x.Address) == t.zoned(p.Addr()) })
	switch {
	case p.Port() == 0:
	case there != nil:
		there.Port = p.Port()
	case p.Port() != t.port():
		t.PeerSettings = append(t.PeerSettings, PeerSetting{PeerConfig: vtep.PeerConfig{Address: p.Addr(), Port: p.Port()}})
	}
}

// Add makes a port a member of the segment, m its settings; nil is all defaults: an untagged
// member. The port is one of the program's own, such as a TAP that it has opened, a [port.Pipe]
// or whatever else is a Port, with a name of its own. It may be a member of several segments,
// with a VLAN each. The node closes it at its end, or when it leaves its last segment. A TAP or
// TUN that was opened without an MTU gets what fits the segment's tunnels. On an error the port is
// still the program's, open unless the error came after it was attached.
func (v *VSI) Add(p vswitch.Port, m *Member) error {
	switch {
	case absent.Is(p):
		return fmt.Errorf("node: segment %d: wanted is a port, not %#v", v.vni, p)
	case !reflect.TypeOf(p).Comparable():
		return fmt.Errorf("node: segment %d: the port is a %T, which cannot be told from others; wanted is a pointer", v.vni, p)
	}
	if _, ok := p.(vswitch.Tunnel); ok {
		return fmt.Errorf("node: segment %d: %q is a tunnel, which a segment is in by Join", v.vni, nameOf(p))
	}
	n, name, fresh := v.n, nameOf(p), false
	n.updates.Lock()
	defer n.updates.Unlock()
	err := n.update(v.edit(func(c *Config, s *Segment) error {
		switch there := index(c).ports[name]; {
		case there != nil && n.own[name] != p:
			return fmt.Errorf("node: segment %d: there is another port %q; each needs a Name() of its own", v.vni, name)
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
		delete(n.own, name)
	}
	return err
}

// Remove takes a port out of the segment. Out of its last one it is closed.
func (v *VSI) Remove(p vswitch.Port) error {
	if absent.Is(p) {
		return fmt.Errorf("node: segment %d: wanted is a port, not %#v", v.vni, p)
	}
	name := nameOf(p)
	return v.n.Update(v.edit(func(c *Config, s *Segment) error {
		if s.member(name) == nil {
			return fmt.Errorf("node: segment %d: port %q is no member", v.vni, name)
		}
		if !v.n.is(name, p) {
			return fmt.Errorf("node: segment %d: port %q is another one", v.vni, name)
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

// is reports whether p is the port of a name, as it was opened or as the switch has it. One that has
// failed is known by its name alone.
func (n *Node) is(name string, p vswitch.Port) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.ports[name]
	return d == nil || p == d.port || any(p) == any(d.raw)
}

// Gateway gives the segment an interface in a VRF, which is made if there is none of that name.
// Without a MAC it gets one, at random, unless the segment carries IP without Ethernet.
func (v *VSI) Gateway(vrf string, g Gateway) error {
	return v.n.Update(v.edit(func(c *Config, s *Segment) error {
		if s.Gateway != nil {
			return fmt.Errorf("node: segment %d has a gateway; Update changes it", v.vni)
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

// nameOf returns what a port is called.
func nameOf(p any) string {
	if x, ok := p.(interface{ Name() string }); ok {
		return x.Name()
	}
	return fmt.Sprintf("%T", p)
}
