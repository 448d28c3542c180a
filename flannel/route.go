package flannel

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// A Route is one of the host's kernel.
type Route struct {
	Prefix netip.Prefix
	Via    netip.Addr
	MAC    frame.MAC // of Via, on the TAP; zero = that is asked for
	Direct bool      // through the link to Via; else through the TAP, on which Via is, whatever other routes say
}

// A RouteUpdate says which routes of the host have come and gone, each sorted. A route of Add replaces the one with its prefix.
type RouteUpdate struct {
	Snapshot bool // Add are all routes, and others are gone
	Add, Del []Route
}

// Routes returns the routes of the host, sorted.
func (m *Mapper) Routes() (list []Route) {
	for _, l := range m.leases {
		list = append(list, l.routes...)
	}
	sortRoutes(list)
	return list
}

func sortRoutes(list []Route) {
	slices.SortFunc(list, func(a, b Route) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()), a.Via.Compare(b.Via))
	})
}

// setRoutes notes the routes of a lease, none when it has gone.
func (m *Mapper) setRoutes(l *mapped, routes []Route) {
	if slices.Equal(routes, l.routes) {
		return
	}
	if _, ok := m.before[l.key]; !ok && m.routed {
		m.before[l.key] = l.routes
	}
	l.routes = routes
}

// FlushRoutes passes to f what has changed of the routes, if anything has; at first and after an error all of them, as a snapshot.
func (m *Mapper) FlushRoutes(f func(RouteUpdate) error) error {
	var u RouteUpdate
	if u.Snapshot = !m.routed; u.Snapshot {
		u.Add = m.Routes()
	} else {
		for key, was := range m.before {
			var now []Route
			if l := m.leases[key]; l != nil {
				now = l.routes
			}
			u.Add, u.Del = without(u.Add, now, was), without(u.Del, was, now)
		}
		sortRoutes(u.Add)
		sortRoutes(u.Del)
	}
	clear(m.before)
	if !u.Snapshot && len(u.Add)+len(u.Del) == 0 {
		return nil
	}
	err := f(u)
	m.routed = err == nil
	return err
}

// without appends those of list that are not in other.
func without(to, list, other []Route) []Route {
	for _, r := range list {
		if !slices.Contains(other, r) {
			to = append(to, r)
		}
	}
	return to
}
