package vtep

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// resolve returns the Endpoint of a configured address.
//
// A link-local address belongs to an interface (RFC 4007). If the VTEP's own address is link-local, peers are on
// the same interface, with or without a zone; an equal zone name means that interface even if the caller runs in
// another network namespace.
func (v *VTEP) resolve(ap netip.AddrPort) (frame.Endpoint, error) {
	var own frame.Endpoint
	a := ap.Addr()
	if s := v.families[family6]; s != nil {
		l := s.link.Load()
		if own = l.own; own.Scope != 0 && a.Zone() == l.zone {
			a = a.WithZone("")
		}
	}
	e, err := frame.EndpointFrom(netip.AddrPortFrom(a, ap.Port()))
	switch {
	case err != nil:
		return e, fmt.Errorf("vtep: peer: %w", err)
	case !e.IsLinkLocal():
		e.Scope = 0
	case own.Scope == 0 && e.Scope == 0:
		return e, fmt.Errorf("vtep: peer %v: a link-local address needs a zone, such as %v%%eth0", ap.Addr(), ap.Addr())
	case e.Scope == 0:
		e.Scope = own.Scope
	case own.Scope != 0 && e.Scope != own.Scope:
		return e, fmt.Errorf("vtep: peer %v: zone differs from that of %v, the VTEP's own address", ap.Addr(), v.families[family6].link.Load().u.LocalAddr().Addr())
	}
	return e, nil
}

// addr returns the address of an endpoint, with the zone name that was given for the VTEP's own address.
func (v *VTEP) addr(e frame.Endpoint) netip.AddrPort {
	ap := e.AddrPort()
	if s := v.families[family6]; e.Scope != 0 && s != nil {
		if l := s.link.Load(); e.Scope == l.own.Scope {
			return netip.AddrPortFrom(ap.Addr().WithZone(l.zone), ap.Port())
		}
	}
	return ap
}
