package hostnet

import (
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	settle      = 20 * time.Millisecond // changes come in bursts
	maxSlowdown = 64                    // of the interval, while something cannot be put back
	watchBuffer = 1 << 20               // bytes of events that may wait, if the system lets them
)

// subscription is what the kernel tells of changes. A channel is closed if events were lost. The zero value tells nothing.
type subscription struct {
	links     chan netlink.LinkUpdate
	addresses chan netlink.AddrUpdate
	routes    chan netlink.RouteUpdate
	done      chan struct{}
}

func (h *Host) subscribe() (s subscription, err error) {
	s.done = make(chan struct{})
	defer func() {
		if err != nil {
			s.close()
			err = fmt.Errorf("hostnet: events of the kernel: %w", err)
		}
	}()
	links, addresses, routes := make(chan netlink.LinkUpdate), make(chan netlink.AddrUpdate), make(chan netlink.RouteUpdate)
	if err := netlink.LinkSubscribeWithOptions(links, s.done, netlink.LinkSubscribeOptions{Namespace: &h.ns, ReceiveBufferSize: watchBuffer}); err != nil {
		return s, err
	}
	s.links = links // which closes in the end, but only if it is subscribed
	if err := netlink.AddrSubscribeWithOptions(addresses, s.done, netlink.AddrSubscribeOptions{Namespace: &h.ns, ReceiveBufferSize: watchBuffer}); err != nil {
		return s, err
	}
	s.addresses = addresses
	if err := netlink.RouteSubscribeWithOptions(routes, s.done, netlink.RouteSubscribeOptions{Namespace: &h.ns, ReceiveBufferSize: watchBuffer}); err != nil {
		return s, err
	}
	s.routes = routes
	return s, nil
}

// close ends the subscription, and waits for its goroutines.
func (s *subscription) close() {
	if s.done == nil {
		return
	}
	close(s.done)
	drain(s.links)
	drain(s.addresses)
	drain(s.routes)
	*s = subscription{}
}

func drain[T any](c chan T) {
	for c != nil {
		if _, ok := <-c; !ok {
			return
		}
	}
}

// soon has the goroutine look again, as it does after a repair that failed.
func (h *Host) soon() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// watch repairs until Close.
func (h *Host) watch(s subscription) {
	defer close(h.ended)
	defer func() { s.close() }()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	timer.Stop()
	var due, last time.Time // of the next pass, zero = none; of the last one
	at := func(t time.Time) {
		if due.IsZero() || t.Before(due) {
			due = t
			timer.Reset(time.Until(t))
		}
	}
	dirty := func(yes bool) { // after the burst, and not before the interval is over
		if yes {
			at(later(time.Now().Add(settle), last.Add(h.cfg.Interval)))
		}
	}
	// lost begins again: a pass compares everything.
	lost := func() {
		s.close()
		dirty(true)
	}
	slow, said := h.cfg.Interval, ""
	for {
		select {
		case <-h.done:
			return
		case <-h.kick:
			at(time.Now().Add(h.cfg.Interval))
		case u, ok := <-s.links:
			if dirty(ok && h.heedsLink(&u)); !ok {
				lost()
			}
		case u, ok := <-s.addresses:
			if dirty(ok && h.heedsAddress(&u)); !ok {
				lost()
			}
		case u, ok := <-s.routes:
			if dirty(ok && h.heedsRoute(&u)); !ok {
				lost()
			}
		case <-timer.C:
			due = time.Time{}
			var blind error
			if s.done == nil {
				s, blind = h.subscribe()
			}
			rep := h.repair()
			rep.Err = errors.Join(blind, rep.Err)
			last = time.Now()
			if rep.Err == nil {
				slow, said = h.cfg.Interval, ""
			} else {
				slow = min(2*slow, maxSlowdown*h.cfg.Interval)
				at(last.Add(slow))
				if rep.Err.Error() == said && !rep.done() { // nothing new
					continue
				}
				said = rep.Err.Error()
			}
			if h.cfg.Repaired != nil && (rep.done() || rep.Err != nil) {
				h.cfg.Repaired(rep)
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// repair makes a pass, unless the Host is closed.
func (h *Host) repair() (rep Repair) {
	h.op.Lock()
	defer h.op.Unlock()
	if h.closed() {
		return rep
	}
	rep = h.pass()
	if waiting := h.errors(nil); len(waiting) > 0 && h.index != 0 {
		rep.Err = errors.Join(rep.Err, waiting)
	}
	return rep
}

// heedsLink reports whether a change of a device is one of ours that must be undone.
func (h *Host) heedsLink(u *netlink.LinkUpdate) bool {
	a := u.Attrs()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case a.Index == h.index && h.index != 0:
		return u.Header.Type == unix.RTM_DELLINK || a.Name != h.cfg.Device || u.IfInfomsg.Flags&unix.IFF_UP == 0 ||
			h.cfg.MTU != 0 && a.MTU != h.cfg.MTU || h.stuck()
	case a.Name == h.cfg.Device:
		return true
	}
	return false
}

// heedsAddress does so for an address. One that goes takes routes with it of which the kernel does not tell.
func (h *Host) heedsAddress(u *netlink.AddrUpdate) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if u.NewAddr {
		return h.stuck()
	}
	if u.LinkIndex == h.index {
		return true
	}
	ip := prefix(&u.LinkAddress).Addr()
	for _, r := range h.set {
		if r.Source == ip {
			return true
		}
	}
	return false
}

// heedsRoute does so for a route: one of ours that has gone or that we did not make, a foreign one that took the place
// of ours or made room, and any that may lead to a gateway.
func (h *Host) heedsRoute(u *netlink.RouteUpdate) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.managed {
		return false
	}
	k := keyOf(&u.Route)
	if r, ok := h.route(&u.Route); h.mine(&u.Route) {
		same := ok && h.set[k] != nil && h.set[k].bare() == r
		return same == (u.Type == unix.RTM_DELROUTE)
	}
	if h.want[k] != nil {
		return true
	}
	return u.Type == unix.RTM_NEWROUTE && h.stuck()
}

// stuck reports whether routes wait for something else than their place.
func (h *Host) stuck() bool {
	for _, err := range h.waiting {
		if !errors.Is(err, unix.EEXIST) {
			return true
		}
	}
	return false
}
