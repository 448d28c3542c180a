package vtep

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// resolve makes an Endpoint of an address somebody configured.
//
// A link-local address is one of an interface (RFC 4007). On a VTEP whose own address is
// link-local that is the interface of this address, whether the peer's has a zone or not, and
// the same name of the zone is the same interface wherever the caller runs.
func (v *VTEP) resolve(ap netip.AddrPort) (frame.Endpoint, error) {
	var own ownAddress
	a := ap.Addr()
	if s := v.sides[side6]; s != nil {
		own = *s.local.Load()
		if own.Scope != 0 && a.Zone() == own.zone {
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
		return e, fmt.Errorf("vtep: peer %v: is not in the zone of %v, the VTEP's own address", ap.Addr(), v.sides[side6].u.LocalAddr().Addr())
	}
	return e, nil
}

// addr returns an address as users know it: the zone of the VTEP's own address as it was given.
func (v *VTEP) addr(e frame.Endpoint) netip.AddrPort {
	ap := e.AddrPort()
	if s := v.sides[side6]; e.Scope != 0 && s != nil {
		if own := s.local.Load(); e.Scope == own.Scope {
			return netip.AddrPortFrom(ap.Addr().WithZone(own.zone), ap.Port())
		}
	}
	return ap
}
