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

// SetLocal gives the underlay of addr's family another local address, while the VTEP is in
// use; the port stays. Peers keep their numbers, and flood lists are what SetFlood was given
// without the new address: the old one is a peer from now on, where it was given. Peers of
// other ways than flood lists that have the new address are not touched. The MTU stays what it
// was, too.
//
// On an error nothing has changed; it is the underlay's, one that errors.Is
// errors.ErrUnsupported if that has no SetLocal, or [ErrFull].
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

// setSide makes s one at the local address addr, and the flood lists such as do not have it.
// v.mu is held.
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
