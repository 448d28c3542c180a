package flannel

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/control"
)

// carry returns the rows and the routes of a lease that can be read, and notes why it is refused.
func (m *Mapper) carry(l *mapped) (rows []control.Row, routes []Route) {
	b := &m.cfg.Network.Backend
	if l.lease.Type != b.Type {
		l.refuse(OtherBackend, "%s: must be %s", l.lease.Type, b.Type)
		return nil, nil
	}
	any := false
	for _, f := range []family{ipv4, ipv6} {
		p, r := l.lease.Subnet.prefix(f), &m.cfg.Network.IPv4
		if f == ipv6 {
			r = &m.cfg.Network.IPv6
		}
		if !p.IsValid() || !r.IsValid() {
			continue
		}
		any = true
		if m.accept(l, f, r) {
			x, y := m.way(l, f)
			rows, routes = append(rows, x...), append(routes, y...)
		}
	}
	if !any {
		l.refuse(OtherFamily, "%v: the network is %v", l.lease.Subnet, m.cfg.Network)
	}
	return rows, routes
}

// accept reports whether the part of a lease for a family counts.
func (m *Mapper) accept(l *mapped, f family, r *Range) bool {
	p, e, own := l.lease.Subnet.prefix(f), l.lease.end(f), m.cfg.Own.Subnet.prefix(f)
	before := len(l.refused)
	switch vxlan := m.cfg.Network.Backend.Type == "vxlan"; {
	case p.Bits() < r.Network.Bits() || !r.Network.Contains(p.Addr()):
		l.refuse(Outside, "%v: must be in %v", p, r.Network)
	case own.Contains(p.Addr()) && p.Bits() >= own.Bits():
		l.refuse(OwnSubnet, "%v: ours is %v", p, own)
	case e.PublicIP == m.cfg.Own.end(f).PublicIP:
		l.refuse(OwnPublicIP, "%v is the address of this node", e.PublicIP)
	case r.Network.Contains(e.PublicIP):
		l.refuse(Inside, "%v: must not be in %v", e.PublicIP, r.Network)
	case vxlan && e.VNI != m.cfg.Network.Backend.VNI:
		l.refuse(OtherVNI, "%d: must be %d", e.VNI, m.cfg.Network.Backend.VNI)
	case vxlan && (e.MAC == m.cfg.Own.IPv4.MAC || e.MAC == m.cfg.Own.IPv6.MAC):
		l.refuse(OwnMAC, "%v is the MAC of this node", e.MAC)
	}
	if len(l.refused) > before {
		return false
	}
	if x := m.byPrefix[p][0]; x != l {
		l.refuse(SameSubnet, "%v: is that of %s", p, x.key)
		return false
	}
	if m.cfg.Network.Backend.Type == "vxlan" {
		if x := m.byMAC[e.MAC][0]; x.vtep(e) != l.vtep(e) {
			l.refuse(SameMAC, "%v: is that of %s at %v", e.MAC, x.key, x.vtep(e))
			return false
		}
	}
	if m.cfg.Network.Backend.Type == "host-gw" && !m.onLink(e.PublicIP) {
		l.refuse(OffLink, "%v: must be on a link of this node", e.PublicIP)
		return false
	}
	return true
}

// vtep returns the address of the VTEP that has the MAC of an end: of two families with one MAC that of IPv4, because an FDB
// has one place for a MAC.
func (l *mapped) vtep(e *End) netip.Addr {
	if a := l.lease.IPv4; a.PublicIP.IsValid() && a.MAC == e.MAC {
		return a.PublicIP
	}
	return l.lease.IPv6.PublicIP
}

func (m *Mapper) onLink(a netip.Addr) bool {
	return slices.ContainsFunc(m.links, func(p netip.Prefix) bool { return p.Contains(a) })
}

// way returns the rows and the routes to a subnet of one family.
//
//	            the switch routes                        the host routes (Host)
//	vxlan  3    Prefix via MAC and VTEP                  MAC with IP at VTEP; route via the subnet's first address
//	       2    MAC at VTEP                              the same
//	       1    the VTEP may send                        the same
//	ipip, udp   Prefix via VTEP
//	direct      Prefix via the address; it may send      the VTEP may send; route via the address
func (m *Mapper) way(l *mapped, f family) (rows []control.Row, routes []Route) {
	c, b := &m.cfg, &m.cfg.Network.Backend
	p, e := l.lease.Subnet.prefix(f), l.lease.end(f)
	mac := control.MAC{VNI: c.VNI, MAC: e.MAC, VTEP: netip.AddrPortFrom(l.vtep(e), 0), Tunnel: c.Tunnel}
	sends := control.Flood{VNI: c.VNI, VTEP: mac.VTEP, Tunnel: c.Tunnel, NoBroadcast: true, NoUnknown: true}
	bare := b.Type == "ipip" || b.Type == "udp"
	if bare {
		sends.VTEP = netip.AddrPortFrom(e.PublicIP, 0)
	}
	if direct := b.Type == "host-gw" || b.DirectRouting && m.onLink(e.PublicIP); direct && (c.Host || c.Direct != 0) {
		if b.Type != "host-gw" {
			rows = append(rows, sends) // it may think otherwise, and use the tunnel
		}
		if c.Host {
			return rows, []Route{{Prefix: p, Via: e.PublicIP, Direct: true}}
		}
		return append(rows, control.Prefix{VRF: c.VRF, Prefix: p, Via: control.Via{VNI: c.Direct, IP: e.PublicIP}}), nil
	}
	switch {
	case bare:
		return []control.Row{control.Prefix{VRF: c.VRF, Prefix: p, Via: control.Via{VNI: c.VNI, VTEP: sends.VTEP, Tunnel: c.Tunnel}}}, nil
	case c.Generation == 1:
		return []control.Row{sends}, nil
	case c.Generation == 2:
		return []control.Row{mac}, nil
	case c.Host:
		mac.IP = p.Addr()
		return []control.Row{mac}, []Route{{Prefix: p, Via: p.Addr(), MAC: e.MAC}}
	}
	return []control.Row{control.Prefix{VRF: c.VRF, Prefix: p, Via: control.Via{VNI: c.VNI, MAC: e.MAC, VTEP: mac.VTEP, Tunnel: c.Tunnel}}}, nil
}
