package flannel

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/control"
)

// fit finds out for which families a lease counts that can be read, whatever other leases there are.
func (m *Mapper) fit(l *mapped) {
	s := l.lease.Subnet
	switch b := &m.cfg.Network.Backend; {
	case l.lease.Type != b.Type:
		l.unfit = []*Refusal{refusal(l.key, OtherBackend, "%s: must be %s", l.lease.Type, b.Type)}
	case !(s.IPv4.IsValid() && m.cfg.Network.IPv4.IsValid() || s.IPv6.IsValid() && m.cfg.Network.IPv6.IsValid()):
		l.unfit = []*Refusal{refusal(l.key, OtherFamily, "%v: the network is %v", s, m.cfg.Network)}
	default:
		l.ipv4, l.ipv6 = m.claim(l, ipv4), m.claim(l, ipv6)
	}
}

// claim reports whether the lease counts for a family.
func (m *Mapper) claim(l *mapped, f family) bool {
	if !l.lease.Subnet.prefix(f).IsValid() || !m.cfg.Network.subnets(f).IsValid() {
		return false
	}
	if r := m.check(l, f); r != nil {
		l.unfit = append(l.unfit, r)
		return false
	}
	return true
}

// check returns why the part of a lease for a family cannot count, nil if it can.
func (m *Mapper) check(l *mapped, f family) *Refusal {
	refuse := func(r Reason, format string, args ...any) *Refusal { return refusal(l.key, r, format, args...) }
	b, network := &m.cfg.Network.Backend, m.cfg.Network.subnets(f).Network
	p, e, own := l.lease.Subnet.prefix(f), l.lease.end(f), m.cfg.Own.Subnet.prefix(f)
	vxlan := b.Type == "vxlan"
	switch {
	case p.Bits() < network.Bits() || !network.Contains(p.Addr()):
		return refuse(Outside, "%v: must be in %v", p, network)
	case own.Contains(p.Addr()): // or begins with it
		return refuse(OwnSubnet, "%v: ours is %v", p, own)
	case e.PublicIP == m.cfg.Own.end(f).PublicIP:
		return refuse(OwnPublicIP, "%v is the address of this node", e.PublicIP)
	case network.Contains(e.PublicIP):
		return refuse(Inside, "%v: must not be in %v", e.PublicIP, network)
	case vxlan && e.VNI != b.VNI:
		return refuse(OtherVNI, "%d: must be %d", e.VNI, b.VNI)
	case vxlan && (e.MAC == m.cfg.Own.IPv4.MAC || e.MAC == m.cfg.Own.IPv6.MAC):
		return refuse(OwnMAC, "%v is the MAC of this node", e.MAC)
	}
	return nil
}

// carry returns the rows and the routes of a lease, and sets its refusals.
func (m *Mapper) carry(l *mapped) (rows []control.Row, routes []Route) {
	l.refused = slices.Clone(l.unfit)
	for _, f := range families {
		if !l.claims().prefix(f).IsValid() {
			continue
		}
		if r := m.contest(l, f); r != nil {
			l.refused = append(l.refused, r)
			continue
		}
		x, y := m.way(l, f)
		rows, routes = append(rows, x...), append(routes, y...)
	}
	return rows, routes
}

// contest returns why a lease does not count for a family that it claims, nil if it does: for other leases, or the node's links.
func (m *Mapper) contest(l *mapped, f family) *Refusal {
	p, e := l.lease.Subnet.prefix(f), l.lease.end(f)
	if x := m.byFirst[p.Addr()][0]; x != l {
		return refusal(l.key, SameSubnet, "%v: its first address is that of %s", p, x.key)
	}
	if x := m.around(l, p); x != nil {
		return refusal(l.key, SameSubnet, "%v: is in the subnet of %s", p, x.key)
	}
	switch m.cfg.Network.Backend.Type {
	case "vxlan":
		if x := m.byMAC[e.MAC][0]; x.vtep(e) != l.vtep(e) {
			return refusal(l.key, SameMAC, "%v: is that of %s at %v", e.MAC, x.key, x.vtep(e))
		}
	case "host-gw":
		if !m.onLink(e.PublicIP) {
			return refusal(l.key, OffLink, "%v: must be on a link of this node", e.PublicIP)
		}
	}
	return nil
}

// vtep returns the address of the VTEP that has the MAC of an end: of two families with one MAC that of IPv4, because an FDB
// has one place for a MAC.
func (l *mapped) vtep(e *End) netip.Addr {
	if a := l.lease.IPv4; l.ipv4 && a.MAC == e.MAC {
		return a.PublicIP
	}
	return l.lease.IPv6.PublicIP
}

// direct reports whether packets to the subnet of a family go without a tunnel, if the lease counts for it.
func (m *Mapper) direct(l *mapped, f family) bool {
	c, b := &m.cfg, &m.cfg.Network.Backend
	return b.Type == "host-gw" || b.DirectRouting && (c.Host || c.Direct != 0) && m.onLink(l.lease.end(f).PublicIP)
}

// onLink reports whether an address is on a link of this node.
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
	if m.direct(l, f) {
		if b.Type != "host-gw" {
			rows = append(rows, sends) // the node may not know that we are on its link, and use the tunnel
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
