package node

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// checkTaken returns an error if a port would take an interface from the host that has the local address of a tunnel over sockets of
// the host: they would receive nothing.
func (n *Node) checkTaken(cfg *Config) error {
	var of map[string]underlayOf
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		d := n.ports[p.Name]
		made := d != nil && !d.from.existed
		if p.Type != PortInterface && p.Type != PortVeth || p.Namespace != "" || made {
			continue
		}
		if of == nil {
			of = cfg.underlays()
		}
		if x, ok := of[p.Name]; ok {
			err := fmt.Errorf("interface %q has %v, the local address of tunnel %q, which would receive nothing: %w", p.Name, x.addr, x.tunnel.Name, syscall.EINVAL)
			return fmt.Errorf("port %q: %w", p.Name, err)
		}
	}
	return nil
}

// An underlayOf is what an interface of the host is for: a tunnel over sockets has the address.
type underlayOf struct {
	addr   netip.Addr
	tunnel *Tunnel
}

// underlays returns the interfaces with the local addresses of tunnels over sockets of the host, by name.
func (c *Config) underlays() map[string]underlayOf {
	of := map[string]underlayOf{}
	for index, a := range sys.HostAddrs() {
		if c.from(a, "") == nil {
			continue
		}
		if dev, err := net.InterfaceByIndex(index); err == nil {
			if t := c.from(a, dev.Name); t != nil && of[dev.Name].tunnel == nil {
				of[dev.Name] = underlayOf{a, t}
			}
		}
	}
	return of
}

// from returns the tunnel over sockets of the host that has a local address, on a device or with "" on any, or nil.
func (c *Config) from(a netip.Addr, dev string) *Tunnel {
	for i := range c.Tunnels {
		t := &c.Tunnels[i]
		for _, x := range t.locals() {
			if zone := x.Zone(); t.Underlay != UnderlayPacket && x.WithZone("") == a && (zone == "" || dev == "" || zone == dev) {
				return t
			}
		}
	}
	return nil
}
