package hostnet

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A Host keeps the kernel's side of a device that a switch gave the host. Its methods may be called concurrently.
//
// Whatever changes the kernel has op, and takes mu as well to change the fields below it. To read those, either is enough: who has
// op needs no mu, and events, which must not wait for the kernel, take mu alone.
type Host struct {
	cfg Config
	kernel

	op      sync.Mutex            // one operation at a time
	made    map[netip.Prefix]bool // addresses that were not there before
	missing bool                  // the device was not there at the last pass

	mu      sync.Mutex // after op
	managed bool       // SetRoutes was called: routes are no longer as we found them
	index   int        // of the device, 0 = there is none
	want    byKey
	set     byKey         // routes of ours that the kernel has
	waiting map[key]error // routes that it has not, and why

	kick  chan struct{}
	done  chan struct{}
	ended chan struct{}
}

// Open sets the device up, unless it is an Uplink, with its MTU and the addresses, and keeps it so until Close. Routes
// that a former process left on the device stay until the first SetRoutes, which keeps those that are still right.
func Open(cfg *Config) (*Host, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	h := &Host{cfg: cfg.full(), made: map[netip.Prefix]bool{}, set: byKey{}, want: byKey{}, waiting: map[key]error{},
		kick: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
	h.cfg.Addresses = slices.Clone(cfg.Addresses)
	var err error
	if h.kernel, err = openKernel(h.cfg.Namespace); err != nil {
		return nil, fmt.Errorf("hostnet: %w", err)
	}
	sub, err := h.subscribe()
	if err == nil {
		if rep := h.pass(); rep.Err != nil {
			sub.close()
			err = errors.Join(rep.Err, h.remove())
		} else if h.cfg.Sole {
			h.soleAddresses()
		}
	}
	if err != nil {
		h.kernel.close()
		return nil, err
	}
	go h.watch(sub)
	return h, nil
}

// SetRoutes makes the kernel's routes of our protocol into the device exactly these. It adds before it deletes, and
// replaces at once: packets always have a route. Routes that do not change are not touched.
//
// A wrong route, and one that the kernel refuses, does not affect others: the error wraps RouteErrors with all of
// them. A refused one waits, and is set when the reason has gone; so do all if the device has gone. Foreign routes are
// never changed: of one with the same prefix, metric and table the error wraps EEXIST ([fs.ErrExist]).
func (h *Host) SetRoutes(routes ...Route) error {
	h.op.Lock()
	defer h.op.Unlock()
	if h.closed() {
		return fmt.Errorf("hostnet: %s: %w", h.cfg.Device, net.ErrClosed)
	}
	want, errs := h.cfg.plan(routes)
	h.mu.Lock()
	h.want = want
	h.set.share(want)
	clear(h.waiting)
	h.mu.Unlock()
	return h.carryOut(nil, errs)
}

// UpdateRoutes is SetRoutes for a difference, and takes the time of that: routes of add come, or replace those with the same
// prefix, metric and table; routes of del go, but not what has replaced them. The error is that of these routes.
func (h *Host) UpdateRoutes(add, del []Route) error {
	h.op.Lock()
	defer h.op.Unlock()
	if h.closed() {
		return fmt.Errorf("hostnet: %s: %w", h.cfg.Device, net.ErrClosed)
	}
	come, errs := h.cfg.plan(add)
	gone, _ := h.cfg.plan(del)
	keys := []key{}
	h.mu.Lock()
	for k, r := range gone {
		if w := h.want[k]; come[k] == nil && w != nil && *w == *r {
			delete(h.want, k)
			delete(h.waiting, k)
			keys = append(keys, k)
		}
	}
	for k, r := range come {
		h.want[k] = r
		keys = append(keys, k)
	}
	h.mu.Unlock()
	return h.carryOut(keys, errs)
}

// carryOut has the kernel follow want, of some keys or, with nil, of all, and returns what was wrong and what waits of them.
func (h *Host) carryOut(keys []key, errs RouteErrors) error {
	h.mu.Lock()
	first := !h.managed
	h.managed = true
	h.mu.Unlock()
	var rep Repair
	if first || h.index == 0 {
		rep = h.pass()
	} else if h.apply(keys, nil); h.lostDevice() {
		rep = h.pass()
	}
	if h.index == 0 {
		return rep.Err // the reason of all routes
	}
	errs = append(errs, h.errors(keys)...)
	if rep.Err != nil || len(errs) > 0 {
		h.soon()
	}
	if len(errs) == 0 {
		return rep.Err
	}
	return errors.Join(rep.Err, errs)
}

// difference returns what is to be added and deleted so that set becomes want, of some keys or, with nil, of all.
func (h *Host) difference(keys []key) (adds, dels []Route) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if keys == nil {
		for k := range h.want {
			keys = append(keys, k)
		}
		for k := range h.set {
			if h.want[k] == nil {
				keys = append(keys, k)
			}
		}
	}
	for _, k := range keys {
		want, has := h.want[k], h.set[k]
		switch {
		case want != nil && (has == nil || *has != *want):
			adds = append(adds, *want)
		case want == nil && has != nil:
			dels = append(dels, *has)
		}
	}
	order(adds)
	order(dels)
	return adds, dels
}

// An addition is a route for the kernel.
type addition struct {
	Route
	was Route // of ours with the same key, zero = none
	err error // of the kernel
}

// apply makes the difference between set and want, of some keys or, with nil, of all, and returns what it added.
func (h *Host) apply(keys []key, strange []netlink.Route) (added []Route, removed int) {
	come, dels := h.difference(keys)
	adds := make([]addition, len(come))
	h.mu.Lock()
	for i, r := range come {
		adds[i].Route = r
		if has := h.set[r.key()]; has != nil {
			adds[i].was = *has
		}
		h.set[r.key()] = h.want[r.key()] // first, since events are compared with it
	}
	h.mu.Unlock()
	replaced := h.add(adds)
	h.mu.Lock()
	for _, a := range adds {
		k := a.key()
		if delete(h.waiting, k); a.err == nil {
			added = append(added, a.Route)
			continue
		}
		if delete(h.set, k); a.was != (Route{}) {
			h.set[k] = new(a.was)
		}
		h.waiting[k] = a.err
	}
	for _, r := range dels {
		delete(h.set, r.key())
	}
	h.mu.Unlock()
	h.del(dels) // gone, or seen by the next pass
	h.unsetMACs(append(replaced, dels...))
	for _, s := range strange {
		h.nl.RouteDel(&s)
	}
	return added, len(dels) + len(strange)
}

// add has the kernel add routes, many at once but those that replace others, which it returns: their next hops may be needed no longer.
func (h *Host) add(adds []addition) (replaced []Route) {
	found := conflicts{}
	var requests []*nl.NetlinkRequest
	var of []*addition // for each request
	ask := func(a *addition, q *nl.NetlinkRequest) { requests, of = append(requests, q), append(of, a) }
	flush := func() {
		for i, err := range h.send(requests) {
			if a := of[i]; requests[i].Type == unix.RTM_NEWROUTE {
				a.err = cmp.Or(a.err, h.added(a.Route, err, found))
			} else {
				a.err = cmp.Or(a.err, h.explain(a.Route, err))
			}
		}
		requests, of = nil, nil
	}
	for i := range adds {
		a := &adds[i]
		if !a.MAC.IsZero() {
			ask(a, h.neighbourRequest(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, a.Route))
		}
		switch {
		case a.was.bare() == a.bare():
		case a.was == (Route{}):
			ask(a, h.routeRequest(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, a.Route)) // nothing is replaced
		default:
			if flush(); a.err == nil {
				a.err = h.change(h.message(a.was), a.Route, found)
				replaced = append(replaced, a.was)
			}
		}
	}
	flush()
	return replaced
}

// lostDevice reports whether routes were refused because the device is another one now, or down.
func (h *Host) lostDevice() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, err := range h.waiting {
		if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENETDOWN) {
			return true
		}
	}
	return false
}

// errors returns the routes that wait, of some keys or, with nil, of all.
func (h *Host) errors(keys []key) (list RouteErrors) {
	some := map[key]bool{}
	for _, k := range keys {
		some[k] = true
	}
	for r, err := range h.Waiting() {
		if keys == nil || some[r.key()] {
			list = append(list, RouteError{r, err})
		}
	}
	return list
}

// Waiting iterates over the routes that the kernel does not have now, each with the reason.
func (h *Host) Waiting() iter.Seq2[Route, error] {
	return func(yield func(Route, error) bool) {
		h.mu.Lock()
		waiting := maps.Clone(h.waiting)
		routes := make([]Route, 0, len(waiting))
		for k := range waiting {
			routes = append(routes, *h.want[k])
		}
		h.mu.Unlock()
		order(routes)
		for _, r := range routes {
			if !yield(r, waiting[r.key()]) {
				return
			}
		}
	}
}

// Routes iterates over the routes that SetRoutes has set in the kernel, with the defaults filled in.
func (h *Host) Routes() iter.Seq[Route] {
	return func(yield func(Route) bool) {
		h.mu.Lock()
		var routes []Route
		for k, r := range h.set {
			if w := h.want[k]; w != nil && *w == *r {
				routes = append(routes, *r)
			}
		}
		h.mu.Unlock()
		order(routes)
		for _, r := range routes {
			if !yield(r) {
				return
			}
		}
	}
}

func (h *Host) closed() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// Leave ends the Host as Close does, but leaves routes and addresses for the next one: those of a device that outlives the
// program.
func (h *Host) Leave() {
	if h.end() {
		h.kernel.close()
	}
}

// Delete ends the Host, and deletes the device with everything on it.
func (h *Host) Delete() error {
	if !h.end() {
		return nil
	}
	defer h.kernel.close()
	link, err := h.nl.LinkByName(h.cfg.Device)
	if err == nil {
		err = h.nl.LinkDel(link)
	}
	if errors.As(err, new(netlink.LinkNotFoundError)) || gone(err) == nil {
		return nil
	}
	return fmt.Errorf("hostnet: deleting %s: %w", h.cfg.Device, h.allowed(err))
}

// Close removes the routes that SetRoutes has set, and the addresses that were not there before. The device stays
// up, with its MTU. With the last IPv4 address of a device Linux removes all IPv4 routes into it, whoever made them. Close
// is idempotent.
func (h *Host) Close() error {
	if !h.end() {
		return nil
	}
	h.op.Lock()
	defer h.op.Unlock()
	defer h.kernel.close()
	return h.remove()
}

// end ends the goroutine, and reports whether it was this call that did.
func (h *Host) end() bool {
	h.op.Lock()
	again := h.closed()
	if !again {
		close(h.done)
	}
	h.op.Unlock()
	<-h.ended
	return !again
}

// remove deletes what we made.
func (h *Host) remove() error {
	var errs []error
	if h.managed {
		h.mu.Lock()
		var routes []Route
		for _, r := range h.set {
			routes = append(routes, *r)
		}
		clear(h.set)
		clear(h.waiting)
		h.mu.Unlock()
		order(routes)
		for i, err := range h.del(routes) {
			if err != nil {
				errs = append(errs, RouteError{routes[i], err})
			}
		}
		h.unsetMACs(routes)
	}
	for a := range h.made {
		if err := h.delAddress(a); err != nil {
			errs = append(errs, fmt.Errorf("hostnet: address %v of %s: %w", a, h.cfg.Device, err))
		}
	}
	return errors.Join(errs...)
}
