package vtep

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
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
// ports, the VTEP keeps its MTU until [VTEP.FollowMTU], its counters and its multicast groups. Flood lists are updated as if SetFlood
// were called again: they leave out the new local address, and contain the old one if it was given. Other
// peers at the new address stay.
//
// What a Send of the old underlay did not send goes to u. What comes to the old local address afterwards is lost;
// so is what waits in the old receive buffers for longer than a millisecond. While both underlays are in a
// multicast group, a packet to the group may be received twice.
//
// u is another underlay with as many Readers as the old one (an AF_PACKET underlay with two queues for a UDP
// with one), and numbers of transmit sockets (Header.Sockets) that mean the same. UDP underlays with one port can
// be open together only at two addresses, neither a wildcard.
//
// On success the VTEP owns u. On an error nothing has changed, and u is still the caller's: u does not fit, or the
// error is that of joining a group, net.ErrClosed or [ErrFull].
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
	s := v.families[familyOf(e)]
	if s == nil {
		return fmt.Errorf("vtep: SetUnderlay: %v: the VTEP has no underlay of this address family", addr.Addr())
	}
	old, l := s.link.Load(), newLink(u, e)
	if reflect.ValueOf(u).Comparable() && u == old.u {
		return fmt.Errorf("vtep: SetUnderlay: %v is its underlay already", addr)
	}
	if got, want := len(u.Readers()), len(old.u.Readers()); got != want {
		return fmt.Errorf("vtep: SetUnderlay: %v has %d Readers: must be %d, as before", addr, got, want)
	}
	grouped, err := v.relink(s, l)
	if err != nil {
		return err
	}
	v.listen(u)
	if !grouped {
		time.Sleep(drain)
	}
	old.u.Pause() // Readers go over now: Close of packet sockets takes 50 ms
	_ = old.u.Close()
	return nil
}

// relink makes l the link of s. It reports whether l is in multicast groups. v.swap is held.
func (v *VTEP) relink(s *family, l *link) (grouped bool, err error) {
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
		if h.joined == 0 || v.families[h.family] != s {
			continue
		}
		if err := l.u.Join(h.address()); err != nil {
			return false, fmt.Errorf("vtep: group %v: %w", h.address(), err)
		}
		joined = append(joined, h.address())
	}
	for _, n := range v.networks.All() { // the address that flood lists may contain from now on
		for _, e := range n.flood.Load().given {
			if e.Host() == old.own && e.Host() != l.own {
				if _, err := v.peer(e.Endpoint); err != nil {
					return false, err
				}
			}
		}
	}
	if v.paused {
		l.pause(true)
	}
	v.setLink(s, l)
	return len(joined) > 0, nil
}

// setLink stores l, and removes its local address from the flood lists. v.mu is held.
func (v *VTEP) setLink(s *family, l *link) {
	moved := s.link.Swap(l).own != l.own
	v.changed()
	for vni, n := range v.networks.All() {
		l := n.flood.Load()
		es := l.given
		if es == nil {
			es = l.entries()
		}
		if l.given == nil && !slices.ContainsFunc(es, func(e floodEntry) bool { return v.isLocal(e.Endpoint) }) {
			continue
		}
		es = slices.Clone(es)
		for i := range es {
			if h, ok := v.byHost.Load(hostKey(es[i].Host())); ok {
				es[i].Port = h.given // no other setting of the port changes
			}
		}
		_ = v.setFlood(frame.VNI(vni), es) // all peers exist, and all groups are joined
	}
	if moved {
		v.told(frame.EventLocalChanged, 0)
	}
}
