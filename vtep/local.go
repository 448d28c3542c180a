package vtep

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/optional"
)

// A mover is an Underlay whose local address can be changed under traffic.
type mover interface {
	SetLocal(addr netip.Addr) error
}

func (s *side) setLocal(e frame.Endpoint, zone string) {
	own := &ownAddress{e.Host(), zone}
	if e.AddrPort().Addr().IsUnspecified() {
		own.Endpoint = frame.Endpoint{}
	}
	s.local.Store(own)
}

// SetLocal changes the local address of the underlay of addr's family under traffic. The port and the MTU stay
// the same, and peers keep their numbers. Flood lists are updated as if SetFlood were called again: they leave
// out the new address, and contain the old one if it was given. Other peers at the new address stay.
//
// On an error nothing has changed. The error is that of the underlay, errors.ErrUnsupported if the underlay
// has no SetLocal, or [ErrFull].
func (v *VTEP) SetLocal(addr netip.Addr) error {
	e, err := frame.EndpointFrom(netip.AddrPortFrom(addr, 0))
	if err != nil {
		return fmt.Errorf("vtep: SetLocal: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errClosed(); err != nil {
		return err
	}
	s := v.sides[sideOf(e)]
	if s == nil {
		return fmt.Errorf("vtep: SetLocal: %v: the VTEP has no underlay of this address family", addr)
	}
	m, ok := optional.Of[mover](s.u)
	if !ok {
		return fmt.Errorf("vtep: SetLocal: the underlay: %w", errors.ErrUnsupported)
	}
	old := s.u.LocalAddr().Addr()
	if err := m.SetLocal(addr); err != nil {
		return err
	}
	if err := v.setSide(s, addr); err != nil {
		return errors.Join(err, m.SetLocal(old), v.setSide(s, old))
	}
	return nil
}

// setSide sets the local address of s, and removes that address from the flood lists. v.mu is held.
func (v *VTEP) setSide(s *side, addr netip.Addr) error {
	e, err := frame.EndpointFrom(netip.AddrPortFrom(addr, 0))
	if err != nil {
		return fmt.Errorf("vtep: SetLocal: %w", err)
	}
	s.setLocal(e, addr.Zone())
	for vni, n := range v.networks.All() {
		l := n.flood.Load()
		es := l.given
		if es == nil {
			es = l.endpoints()
		}
		if l.given == nil && !slices.ContainsFunc(es, v.isLocal) {
			continue
		}
		if err := v.setFlood(frame.VNI(vni), es); err != nil {
			return err
		}
	}
	return nil
}
