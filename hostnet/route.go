package hostnet

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// A Route is a route of the kernel into the device. Its scope is as "ip route" has it: link without Via, global with it.
type Route struct {
	Prefix netip.Prefix // needed, without host bits
	Via    netip.Addr   // next hop, for a TAP; none = everything of the prefix is on the device, as behind a TUN
	OnLink bool         // Via is on the device though no route says so, as flannel's are
	MAC    frame.MAC    // of Via: nobody has to be asked for it ("ip neigh" says PERMANENT); zero = the kernel asks

	// Source is the source address of the host's own packets; default the first of Config.Addresses in the
	// family, 0.0.0.0 or :: = the kernel chooses.
	Source netip.Addr

	Metric int // default Config.Metric; the lowest wins
	Table  int // default Config.Table
}

// String returns the route as "ip route" writes it, without the device.
func (r Route) String() string {
	s := r.Prefix.String()
	if r.Via.IsValid() {
		s += " via " + r.Via.String()
	}
	if r.OnLink {
		s += " onlink"
	}
	if r.Source.IsValid() {
		s += " src " + r.Source.String()
	}
	if r.Metric != 0 {
		s += fmt.Sprint(" metric ", r.Metric)
	}
	if r.Table != 0 && r.Table != DefaultTable {
		s += fmt.Sprint(" table ", r.Table)
	}
	return s
}

// A RouteError says why the kernel does not have a route.
type RouteError struct {
	Route Route
	Err   error
}

// Error returns the route and the error in one line.
func (e RouteError) Error() string { return fmt.Sprintf("hostnet: route %v: %v", e.Route, e.Err) }

// Unwrap returns Err.
func (e RouteError) Unwrap() error { return e.Err }

// RouteErrors are the routes that the kernel does not have, at least one.
type RouteErrors []RouteError

// Error returns the first error, and the number of others.
func (e RouteErrors) Error() string {
	if len(e) == 1 {
		return e[0].Error()
	}
	return fmt.Sprintf("%v (and %d more routes)", e[0], len(e)-1)
}

// Unwrap returns the errors.
func (e RouteErrors) Unwrap() []error {
	list := make([]error, len(e))
	for i := range e {
		list[i] = e[i]
	}
	return list
}

// key is what the kernel tells routes apart by. Without NLM_F_APPEND it has one route for each.
type key struct {
	prefix netip.Prefix
	metric int
	table  int
}

func (r Route) key() key { return key{r.Prefix, r.Metric, r.Table} }

// bare returns the route as the kernel has it, without the MAC of its next hop.
func (r Route) bare() Route {
	r.MAC = frame.MAC{}
	return r
}

// byKey has routes by key. A Route in it does not change, since another one may have it, too.
type byKey map[key]*Route

// share takes the routes that are equal from another one: each is there once.
func (t byKey) share(from byKey) {
	for k, r := range t {
		if x := from[k]; x != nil && *x == *r {
			t[k] = x
		}
	}
}

// plan returns the routes with defaults filled in, and those that are wrong.
func (c *Config) plan(routes []Route) (byKey, RouteErrors) {
	want := make(byKey, len(routes))
	var wrong RouteErrors
	for _, r := range routes {
		f, err := c.fill(r)
		if other := want[f.key()]; err == nil && other != nil && *other != f {
			err = fmt.Errorf("there is another one with this prefix and metric: %v", *other)
		}
		if err != nil {
			wrong = append(wrong, RouteError{r, err})
			continue
		}
		want[f.key()] = &f
	}
	return want, wrong
}

// fill returns a route as the kernel will have it.
func (c *Config) fill(r Route) (Route, error) {
	ip := r.Prefix.Addr()
	family := func(a netip.Addr) bool { return !a.IsValid() || a.Is4() == ip.Is4() && !a.Is4In6() && a.Zone() == "" }
	if !r.Source.IsValid() {
		for _, a := range c.Addresses {
			if a.Addr().Is4() == ip.Is4() {
				r.Source = a.Addr()
				break
			}
		}
	} else if r.Source.IsUnspecified() && family(r.Source) {
		r.Source = netip.Addr{}
	}
	r.Table, r.Metric = cmp.Or(r.Table, c.Table), cmp.Or(r.Metric, c.Metric)
	if r.Metric == 0 && !ip.Is4() {
		r.Metric = 1024 // IP6_RT_PRIO_USER
	}
	var err *setting.Error
	want := func(path string, value any, format string, args ...any) {
		err = &setting.Error{Path: path, Value: value, Allowed: fmt.Sprintf(format, args...)}
	}
	version := "IPv6"
	if ip.Is4() {
		version = "IPv4"
	}
	switch {
	case !r.Prefix.IsValid() || ip.Is4In6():
		want("Prefix", r.Prefix, "an IPv4 or IPv6 prefix")
	case r.Prefix != r.Prefix.Masked():
		want("Prefix", r.Prefix, "%v, without host bits", r.Prefix.Masked())
	case !family(r.Via) || r.Via.IsValid() && (r.Via.IsUnspecified() || r.Via.IsMulticast()):
		want("Via", r.Via, "the %s address of one router", version)
	case r.OnLink && !r.Via.IsValid():
		want("OnLink", true, "false without Via")
	case !r.MAC.IsZero() && (!r.Via.IsValid() || r.MAC.IsGroup()):
		want("MAC", r.MAC, "the MAC of one host, which Via is")
	case !family(r.Source) || r.Source.IsMulticast():
		want("Source", r.Source, "an %s address of this host", version)
	case r.Metric < 0 || r.Metric > maxNumber:
		want("Metric", r.Metric, "0 to %d", maxNumber)
	case r.Table < 1 || r.Table > maxNumber || r.Table == localTable:
		want("Table", r.Table, "1 to %d but not %d (local)", maxNumber, localTable)
	default:
		return r, nil
	}
	return r, err
}

// order sorts routes: those without a next hop first, since they lead to the next hops of others.
func order(routes []Route) {
	slices.SortFunc(routes, func(a, b Route) int {
		if a.Via.IsValid() != b.Via.IsValid() {
			if a.Via.IsValid() {
				return 1
			}
			return -1
		}
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()),
			cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Table, b.Table))
	})
}
