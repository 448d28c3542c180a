package node

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A tunnel is a Tunnel as it runs.
type tunnel struct {
	cfg Tunnel
	v   *vtep.VTEP
}

// A device is a Port as it runs.
type device struct {
	cfg  Port
	port vswitch.Port
}

// opened is what was opened before anything was touched.
type opened struct {
	tunnels map[string]*vtep.VTEP
	ports   map[string]vswitch.Port
}

func (f opened) close() {
	for _, v := range f.tunnels {
		v.Close()
	}
	for _, p := range f.ports {
		p.Close()
	}
}

// openFirst opens what is new or differs, except for what an open one is in the way of: the
// address and port of a tunnel, the device of a port. When something cannot be had, nothing
// stays open.
func (n *Node) openFirst(cfg *Config) (opened, error) {
	f := opened{map[string]*vtep.VTEP{}, map[string]vswitch.Port{}}
	var move []*Tunnel
	for i := range cfg.Tunnels {
		c := &cfg.Tunnels[i]
		if n.moves(c) {
			move = append(move, c)
			continue
		}
		if n.inTheWay(c) {
			continue
		}
		v, err := n.openTunnel(c)
		if err != nil {
			f.close()
			return opened{}, fmt.Errorf("tunnel %q: %w", c.Name, err)
		}
		f.tunnels[c.Name] = v
	}
	for i := range cfg.Ports {
		c := &cfg.Ports[i]
		if n.ports[c.Name] != nil {
			continue
		}
		p, err := n.openPort(c)
		if err != nil {
			f.close()
			return opened{}, fmt.Errorf("port %q: %w", c.Name, err)
		}
		f.ports[c.Name] = p
	}
	if err := n.moveAll(move); err != nil {
		f.close()
		return opened{}, err
	}
	return f, nil
}

// moves reports whether c differs from the open tunnel of its name in nothing but the local
// address, which nobody has.
func (n *Node) moves(c *Tunnel) bool {
	t := n.tunnels[c.Name]
	if t == nil || n.inTheWay(c) || t.cfg.Local.Is4() != c.Local.Is4() {
		return false
	}
	same := t.cfg
	same.Local = c.Local
	return reflect.DeepEqual(same, *c)
}

// moveAll gives open tunnels other local addresses: all of them, or with an error none.
func (n *Node) moveAll(to []*Tunnel) error {
	if len(to) == 0 {
		return nil
	}
	c := to[0]
	t := n.tunnels[c.Name]
	old := t.cfg.Local
	if err := t.v.SetLocal(c.Local); err != nil {
		return fmt.Errorf("tunnel %q: %w", c.Name, err)
	}
	t.cfg.Local = c.Local
	err := n.moveAll(to[1:])
	if err == nil {
		return nil
	}
	if e := t.v.SetLocal(old); e != nil {
		return fmt.Errorf("%w; and tunnel %q could not be put back: %w", err, c.Name, e)
	}
	t.cfg.Local = old
	return err
}

// inTheWay reports whether a tunnel that is open has what c needs, be it c as it is.
func (n *Node) inTheWay(c *Tunnel) bool {
	for _, t := range n.tunnels {
		if t.cfg.at() == c.at() {
			return true
		}
	}
	return false
}

// at returns what a tunnel has for itself: the port is 0 for IP-in-IP.
func (t *Tunnel) at() netip.AddrPort { return netip.AddrPortFrom(t.Local, t.port()) }

// openAll closes what differs or is in the way, takes over f and opens the rest.
func (n *Node) openAll(cfg *Config, w wanted, f opened) error {
	needed := map[netip.AddrPort]bool{}
	for i := range cfg.Tunnels {
		needed[cfg.Tunnels[i].at()] = true
	}
	for name, t := range n.tunnels {
		c := w.tunnels[name]
		if c != nil && !reflect.DeepEqual(t.cfg, *c) || c == nil && needed[t.cfg.at()] {
			n.leaveTunnel(name)
			t.v.Close()
			delete(n.tunnels, name)
		}
	}
	for name, d := range n.ports {
		if c := w.ports[name]; c != nil && !reflect.DeepEqual(d.cfg, *c) {
			n.leavePort(name)
			d.port.Close()
			delete(n.ports, name)
		}
	}
	for name, v := range f.tunnels {
		n.tunnels[name] = &tunnel{*w.tunnels[name], v}
	}
	for name, p := range f.ports {
		n.ports[name] = &device{*w.ports[name], p}
	}
	for _, c := range cfg.Tunnels {
		if n.tunnels[c.Name] != nil {
			continue
		}
		v, err := n.openTunnel(&c)
		if err != nil {
			return fmt.Errorf("tunnel %q: %w", c.Name, err)
		}
		n.tunnels[c.Name] = &tunnel{c, v}
	}
	for _, c := range cfg.Ports {
		if n.ports[c.Name] != nil {
			continue
		}
		p, err := n.openPort(&c)
		if err != nil {
			return fmt.Errorf("port %q: %w", c.Name, err)
		}
		n.ports[c.Name] = &device{c, p}
	}
	return nil
}

// dropFailed closes ports and tunnels that the switch has let go because they failed, so that
// they are opened anew.
func (n *Node) dropFailed() {
	for _, s := range n.segments {
		here := s.vsi.Attachments()
		for name, a := range s.far {
			if !slices.Contains(here, a) {
				n.leaveTunnel(name)
				if t := n.tunnels[name]; t != nil {
					t.v.Close()
					delete(n.tunnels, name)
				}
			}
		}
		for name, a := range s.members {
			if !slices.Contains(here, a) {
				n.leavePort(name)
				if d := n.ports[name]; d != nil {
					d.port.Close()
					delete(n.ports, name)
				}
			}
		}
	}
}

// closeUnused closes what the configuration has no longer.
func (n *Node) closeUnused(w wanted) {
	for name, t := range n.tunnels {
		if w.tunnels[name] == nil {
			t.v.Close()
			delete(n.tunnels, name)
		}
	}
	for name, d := range n.ports {
		if w.ports[name] == nil {
			d.port.Close()
			delete(n.ports, name)
		}
	}
	for name := range n.policies {
		if !w.policies[name] {
			delete(n.policies, name)
		}
	}
}

func off(b *bool) bool { return b != nil && !*b }

func (n *Node) openTunnel(c *Tunnel) (*vtep.VTEP, error) {
	var u vtep.Underlay
	var err error
	srcPorts, sum := underlay.PortRange{Lo: c.SrcPorts.Lo, Hi: c.SrcPorts.Hi}, underlay.Checksum(c.Checksum)
	switch {
	case c.Type == Type(encap.TypeIPIP):
		u, err = underlay.ListenIP(c.Local, &underlay.IPConfig{Mark: c.Mark, Device: c.Bind, Queues: c.Queues})
	case c.Underlay == underlayPacket:
		u, err = underlay.ListenPacket(netip.AddrPortFrom(c.Local, c.port()), &underlay.PacketConfig{
			Device: c.Bind, Prefix: c.Prefix, Gateway: c.Gateway, MAC: c.MAC, Queues: c.Queues,
			SrcPorts: srcPorts, Checksum: sum, ZeroChecksum6RX: c.ZeroSum6, NoOffload: off(c.Offload),
		})
	default:
		u, err = underlay.ListenUDP(netip.AddrPortFrom(c.Local, c.port()), &underlay.UDPConfig{
			SrcPorts: srcPorts, Mark: c.Mark, Device: c.Bind, Queues: c.Queues,
			Checksum: sum, ZeroChecksum6RX: c.ZeroSum6, NoOffload: off(c.Offload), MulticastDevice: c.MulticastDevice,
		})
	}
	if err != nil {
		return nil, err
	}
	v, err := vtep.New(&vtep.Config{
		Name: c.Name, Type: encap.Type(c.Type), Peers: vtep.PeerPolicy(c.Peers), MaxPeers: c.MaxPeers, MTU: c.MTU, GroupTTL: c.GroupTTL,
		Reserved: c.Reserved, GBP: c.GBP,
		Header: vtep.Header{TTL: int(c.TTL), TOS: int(c.TOS), DF: vtep.DF(c.DF), ECN: vtep.ECN(c.ECN)},
	}, n.capture.Underlay(u))
	if err != nil {
		u.Close()
	}
	return v, err
}

func (n *Node) openPort(c *Port) (vswitch.Port, error) {
	var p port.Port
	var err error
	cfg := &port.DeviceConfig{MTU: c.MTU, MAC: c.MAC, Queues: c.Queues, NoOffload: off(c.Offload), Namespace: c.Namespace}
	switch c.Type {
	case portTUN:
		p, err = port.OpenTUN(c.Name, cfg)
	case portPacket:
		p, err = port.OpenPacket(c.Name, &port.PacketConfig{
			Queues: c.Queues, Namespace: c.Namespace, Promiscuous: c.Promiscuous, NoOffload: off(c.Offload),
		})
	default:
		p, err = port.OpenTAP(c.Name, cfg)
	}
	if err != nil {
		return nil, err
	}
	return n.capture.Port(p)
}
