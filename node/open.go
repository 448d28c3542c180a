package node

import (
	"fmt"
	"net/netip"
	"reflect"

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

// openAll opens what is new, and anew what differs.
func (n *Node) openAll(cfg *Config, w wanted) error {
	for name, t := range n.tunnels {
		if c := w.tunnels[name]; c != nil && !reflect.DeepEqual(t.cfg, *c) {
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
	if c.Type == Type(encap.TypeIPIP) {
		u, err = underlay.ListenIP(c.Local, &underlay.IPConfig{Mark: c.Mark, Device: c.Bind, Queues: c.Queues})
	} else {
		u, err = underlay.ListenUDP(netip.AddrPortFrom(c.Local, c.port()), &underlay.UDPConfig{
			SrcPorts: underlay.PortRange{Lo: c.SrcPorts.Lo, Hi: c.SrcPorts.Hi}, Mark: c.Mark, Device: c.Bind, Queues: c.Queues,
			Checksum: underlay.Checksum(c.Checksum), ZeroChecksum6RX: c.ZeroSum6, NoOffload: off(c.Offload),
		})
	}
	if err != nil {
		return nil, err
	}
	v, err := vtep.New(&vtep.Config{
		Name: c.Name, Type: encap.Type(c.Type), Peers: vtep.PeerPolicy(c.Peers), MaxPeers: c.MaxPeers, MTU: c.MTU,
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
