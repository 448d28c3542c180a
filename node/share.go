package node

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/port"
)

// A tunnel over packet sockets and the gateway of a segment share an address if a port of type "packet" on the tunnel's
// device, in the network namespace of the node, is an untagged member of the segment. The gateway answers for the
// address, and the port leaves the tunnel's packets to its underlay.

// sharing returns the segment whose gateway shares the address a with a tunnel, nil if there is none, and the prefix of
// that address at the gateway, unless it is a /32 or /128.
func (w wanted) sharing(t *Tunnel, a netip.Addr) (*Segment, netip.Prefix) {
	p := w.ports[t.Device]
	if t.Underlay != UnderlayPacket || t.VLAN != 0 || p == nil || p.Type != PortPacket || p.Namespace != "" {
		return nil, netip.Prefix{}
	}
	for _, g := range w.segments {
		if !slices.ContainsFunc(g.Members, func(m Member) bool { return m.Port == t.Device && m.VLAN == 0 && m.attach().Match == nil }) || !g.ethernet() {
			continue
		}
		for _, x := range g.Gateway.Addresses {
			if x.Addr() != a.WithZone("") {
				continue
			}
			if x.IsSingleIP() {
				return g, netip.Prefix{}
			}
			return g, x.Masked()
		}
	}
	return nil, netip.Prefix{}
}

// shared returns a tunnel with the MAC and the prefixes of the gateway with which it shares its addresses, if there is one.
func (w wanted) shared(t *Tunnel) Tunnel {
	x := *t
	if g, p := w.sharing(t, t.Local); g != nil {
		x.shared, x.MAC, x.Prefix = true, g.Gateway.MAC, cmp.Or(t.Prefix, p)
		_, p = w.sharing(t, t.Local6)
		x.Prefix6 = cmp.Or(t.Prefix6, p)
	}
	return x
}

// unshared returns warnings about tunnels and gateways with one address that they do not share.
func (c *Config) unshared() (list []string) {
	w := index(c)
	for i := range c.Tunnels {
		t := &c.Tunnels[i]
		for _, a := range t.locals() {
			own, _ := w.sharing(t, a)
			for k := range c.Segments {
				s := &c.Segments[k]
				if s.Gateway == nil || own != nil && s.VNI == own.VNI {
					continue
				}
				if slices.ContainsFunc(s.Gateway.Addresses, func(x netip.Prefix) bool { return x.Addr() == a.WithZone("") }) {
					list = append(list, fmt.Sprintf("tunnel %q and the gateway of VNI %d both have the address %v, and do not share it; "+
						"to share it, the tunnel needs the underlay packet and no vlan, and the segment an untagged packet port on the same device", t.Name, s.VNI, a))
				}
			}
		}
	}
	return list
}

// withShared returns a configuration whose tunnels have what they share, a copy if any does.
func (c *Config) withShared() *Config {
	w, own := index(c), c
	for i := range c.Tunnels {
		t := w.shared(&own.Tunnels[i])
		if !t.shared {
			continue
		}
		if c == own {
			x := *own
			x.Tunnels = slices.Clone(own.Tunnels)
			c = &x
		}
		c.Tunnels[i] = t
	}
	return c
}

// Shared reports whether the tunnel shares its address with a gateway, as [afpacket.Config].Shared says: the underlay must
// not answer for the address. It is for [Options].Listen.
func (t *Tunnel) Shared() bool { return t.shared }

// left returns what ports leave to the tunnels of a configuration.
func (c *Config) left() map[string][]port.Address {
	m := map[string][]port.Address{}
	for i := range c.Tunnels {
		if t := &c.Tunnels[i]; t.shared {
			for _, a := range t.locals() {
				m[t.Device] = append(m[t.Device], port.Address{MAC: t.MAC, IP: a.WithZone(""), Port: t.port()})
			}
		}
	}
	return m
}

// leave sets what ports leave to tunnels.
func (n *Node) leave(want map[string][]port.Address) error {
	names := maps.Clone(n.left)
	maps.Copy(names, want)
	for name := range names {
		if slices.Equal(n.left[name], want[name]) {
			continue
		}
		if d := n.ports[name]; d != nil {
			if x, ok := d.raw.(interface{ Leave([]port.Address) error }); ok {
				if err := n.step("filter of a port", func() error { return x.Leave(want[name]) }); err != nil {
					return fmt.Errorf("port %q: %w", name, err)
				}
			}
		}
		if n.left[name] = want[name]; want[name] == nil {
			delete(n.left, name)
		}
	}
	return nil
}

// both returns what is in one of two sets.
func both(a, b map[string][]port.Address) map[string][]port.Address {
	m := maps.Clone(a)
	for name, list := range b {
		m[name] = slices.Clone(m[name])
		for _, x := range list {
			if !slices.Contains(m[name], x) {
				m[name] = append(m[name], x)
			}
		}
	}
	return m
}

// sharedAddress checks the addresses that a tunnel shares with a gateway.
func (k *checker) sharedAddress(key string, t *Tunnel) {
	g, prefix := k.sharing(t, t.Local)
	g6, prefix6 := k.sharing(t, t.Local6)
	switch {
	case g == nil && g6 == nil:
		return
	case g == nil:
		k.Fail(key+".local", t.Local, "is no address of the gateway in VNI %d, which has local6", g6.VNI)
		return
	case t.Local6.IsValid() && g6 != g:
		k.Fail(key+".local6", t.Local6, "is no address of the gateway in VNI %d, which has local", g.VNI)
		return
	}
	if t.MAC != g.Gateway.MAC && !t.MAC.IsZero() {
		k.Fail(key+".mac", t.MAC, "is not that of the gateway in VNI %d with the same address, %v", g.VNI, g.Gateway.MAC)
	}
	for _, x := range []struct {
		name      string
		has, want netip.Prefix
	}{{"prefix", t.Prefix, prefix}, {"prefix6", t.Prefix6, prefix6}} {
		if x.has.IsValid() && x.want.IsValid() && x.has.Masked() != x.want {
			k.Fail(key+"."+x.name, x.has, "is not that of the gateway in VNI %d with the same address, %v", g.VNI, x.want)
		}
	}
	if g.Gateway.Anycast {
		k.Fail(key+".local", t.Local, "is the address of an anycast gateway, in VNI %d", g.VNI)
	}
	for _, m := range g.Members {
		if p := k.ports[m.Port]; p != nil && p.Type == PortPacket && m.Port != t.Device {
			k.Fail(key+".local", t.Local, "is the address of a gateway on several packet ports, %s and %s, in VNI %d", t.Device, m.Port, g.VNI)
			return
		}
	}
}
