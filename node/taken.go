package node

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// checkTaken returns an error if a port would take an interface from the host that has the local address of a tunnel over sockets of
// the host: they would receive nothing.
func (n *Node) checkTaken(cfg *Config) error {
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		d := n.ports[p.Name]
		made := d != nil && !d.from.existed
		if p.Type != PortInterface && p.Type != PortVeth || p.Namespace != "" || made {
			continue
		}
		dev, err := net.InterfaceByName(p.Name)
		if err != nil {
			continue // to open it says why, or makes it
		}
		addrs, _ := dev.Addrs()
		for _, a := range addrs {
			own, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			if t := cfg.from(own.Addr(), dev.Name); t != nil {
				err := fmt.Errorf("interface %q has %v, the local address of tunnel %q, which would receive nothing: %w", p.Name, own.Addr(), t.Name, syscall.EINVAL)
				return fmt.Errorf("port %q: %w", p.Name, err)
			}
		}
	}
	return nil
}

// from returns the tunnel over sockets of the host that has a local address on a device, or nil.
func (c *Config) from(a netip.Addr, dev string) *Tunnel {
	for i := range c.Tunnels {
		t := &c.Tunnels[i]
		for _, x := range t.locals() {
			if zone := x.Zone(); t.Underlay != UnderlayPacket && x.WithZone("") == a && (zone == "" || zone == dev) {
				return t
			}
		}
	}
	return nil
}
