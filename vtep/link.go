package vtep

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
)

// A link is an underlay of a VTEP, as readers and writers use it. SetUnderlay replaces it.
type link struct {
	u    Underlay
	own  frame.Endpoint // local address without port; zero for the wildcard address
	zone string         // of the local address, as given
}

func newLink(u Underlay, local frame.Endpoint) *link {
	l := &link{u: u, own: local.Host(), zone: u.LocalAddr().Addr().Zone()}
	if local.AddrPort().Addr().IsUnspecified() {
		l.own = frame.Endpoint{}
	}
	return l
}

func (l *link) pause(on bool) {
	if on {
		l.u.Pause()
	} else {
		l.u.Resume()
	}
}

// drain is how long SetUnderlay leaves the old underlay open, for what has been sent to it and for Sends that
// have begun.
const drain = time.Millisecond

// SetUnderlay replaces the underlay of u's address family under traffic, for instance by one with another local
// address, and closes the old one. Readers and writers go over to u by themselves. Peers keep their numbers and
// ports, the VTEP keeps its MTU, its counters and its multicast groups. Flood lists are updated as if SetFlood
// were called again: they leave out the new local address, and contain the old one if it was given. Other
// peers at the new address stay.
//
// What a Send of the old underlay did not send goes to u. What comes to the old local address afterwards is lost;
// so is what waits in the old receive buffers for longer than a millisecond. While both underlays are in a
// multicast group, a packet to the group may be received twice.
//
// u has as many Readers as the old underlay, and numbers of transmit sockets (Header.Sockets) that mean the same.
// An underlay at an address cannot be opened beside one at the wildcard address with the same port.
//
// On success the VTEP owns u. On an error nothing has changed, and u is still the caller's: the error is that of
// joining a group, net.ErrClosed or [ErrFull].
func (v *VTEP) SetUnderlay(u Underlay) error {
	if absent.Is(u) {
		return errors.New("vtep: SetUnderlay: the underlay is nil")
	}
	addr := u.LocalAddr()
	e, err := frame.EndpointFrom(addr)
	if err == nil {
		err = v.carries(addr)
	}
	if err != nil {
		return fmt.Errorf("vtep: SetUnderlay: %w", err)
	}
	v.swap.Lock()
	defer v.swap.Unlock()
	s := v.sides[sideOf(e)]
	if s == nil {
		return fmt.Errorf("vtep: SetUnderlay: %v: the VTEP has no underlay of this address family", addr.Addr())
	}
	old, l := s.link.Load(), newLink(u, e)
	if got, want := len(u.Readers()), len(old.u.Readers()); got != want {
		return fmt.Errorf("vtep: SetUnderlay: %v has %d receive queues, allowed are as many as before, %d", addr, got, want)
	}
	grouped, err := v.relink(s, l)
	if err != nil {
		return err
	}
	v.listen(u)
	if !grouped {
		time.Sleep(drain)
	}
	_ = old.u.Close()
	return nil
}

// relink makes l the link of s. It reports whether l is in multicast groups. v.swap is held.
func (v *VTEP) relink(s *side, l *link) (grouped bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errClosed(); err != nil {
		return false, err
	}
	old := s.link.Load()
	var joined []netip.Addr
	defer func() {
		if err != nil {
			for _, a := range joined {
				_ = l.u.Leave(a)
			}
		}
	}()
	for h := range v.hops.all {
		if h.joined == 0 || v.sides[h.side] != s {
			continue
		}
		if err := l.u.Join(h.address()); err != nil {
			return false, fmt.Errorf("vtep: group %v: %w", h.address(), err)
		}
		joined = append(joined, h.address())
	}
	if v.paused {
		l.pause(true)
	}
	if err := v.setLink(s, l); err != nil {
		l.pause(false)
		return false, errors.Join(err, v.setLink(s, old))
	}
	return len(joined) > 0, nil
}

// setLink stores l, and removes its local address from the flood lists. v.mu is held.
func (v *VTEP) setLink(s *side, l *link) error {
	s.link.Store(l)
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
