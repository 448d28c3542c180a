package hostnet

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
)

const dev = "vxhost0"

// alone is a host with a device that has no switch behind it, and a link to elsewhere.
type alone struct {
	*netns.Host
	t       *testing.T
	repairs chan Repair
}

func newAlone(t *testing.T) *alone {
	t.Helper()
	n := netns.New(t)
	a := &alone{n.Host("host"), t, make(chan Repair, 1000)}
	n.Link(a.Host, "10.0.0.1/24,2001:db8::1/64", n.Host("router"), "10.0.0.2/24,2001:db8::2/64")
	a.Ready()
	a.device()
	return a
}

// device makes the device, which has a reader until the test ends. A program that another test is starting may have a copy
// of the descriptor of the one before, until it has started.
func (a *alone) device() (d *port.Device) {
	a.t.Helper()
	a.Until("the device can be made", func() bool {
		var err error
		a.Do(func() { d, err = port.OpenTUN(dev, nil) })
		check.Need(a.t, err == nil || errors.Is(err, syscall.EBUSY), "%v", err)
		return err == nil
	})
	a.t.Cleanup(func() { d.Close() })
	return d
}

// open opens a Host, whose settings lack the device.
func (a *alone) open(cfg Config) *Host {
	a.t.Helper()
	cfg.Device, cfg.Namespace = dev, a.NS
	cfg.Interval = 50 * time.Millisecond
	cfg.Repaired = func(r Repair) {
		select {
		case a.repairs <- r:
		default:
		}
	}
	h := check.Must(Open(&cfg))(a.t)
	a.t.Cleanup(func() { h.Close() })
	return h
}

// leg is the settings that most tests have.
func leg() Config {
	return Config{Addresses: []netip.Prefix{netip.MustParsePrefix("10.65.1.60/32"), netip.MustParsePrefix("fd65:1::60/128")}, MTU: 1400}
}

func to(prefix string) Route { return Route{Prefix: netip.MustParsePrefix(prefix)} }

// shown returns the routes of a protocol, as "ip route" prints them.
func (a *alone) shown(args ...string) (lines []string) {
	a.t.Helper()
	for _, family := range []string{"-4", "-6"} {
		out := a.IP(slices.Concat([]string{family, "route", "show", "proto", fmt.Sprint(DefaultProtocol)}, args)...)
		for line := range strings.Lines(out) {
			line, _, _ = strings.Cut(strings.Join(strings.Fields(line), " "), " pref medium")
			lines = append(lines, strings.TrimSuffix(line, " linkdown"))
		}
	}
	slices.Sort(lines)
	return lines
}

func (a *alone) want(want ...string) {
	a.t.Helper()
	slices.Sort(want)
	check.Slice(a.t, "routes", a.shown(), want)
}

// comes waits until the routes are these.
func (a *alone) comes(want ...string) {
	a.t.Helper()
	slices.Sort(want)
	var got []string
	end := time.Now().Add(netns.Timeout)
	for got = a.shown(); !slices.Equal(got, want); got = a.shown() {
		if time.Now().After(end) {
			a.t.Fatalf("routes %q, want %q", got, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// changes is what the kernel tells of our routes while f runs.
func (a *alone) changes(f func()) string {
	a.t.Helper()
	p := a.Start("ip", "-o", "monitor", "route")
	a.Until("the monitor listens", func() bool {
		a.Run("ip", "route", "replace", "blackhole", "203.0.113.1/32")
		a.Run("ip", "route", "del", "blackhole", "203.0.113.1/32")
		return strings.Contains(p.Output(), "203.0.113.1")
	})
	f()
	a.IP("route", "add", "blackhole", "203.0.113.2/32") // the last one
	p.Want("203.0.113.2")
	a.IP("route", "del", "blackhole", "203.0.113.2/32")
	p.Stop()
	_, out, _ := strings.Cut(p.Output(), "Deleted blackhole 203.0.113.1")
	var ours []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, " proto 118 ") {
			ours = append(ours, strings.TrimSpace(line))
		}
	}
	return strings.Join(ours, "\n")
}

func TestSetRoutes(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	h := a.open(leg())
	addrs := a.IP("-o", "addr", "show", "dev", dev)
	for _, want := range []string{"10.65.1.60/32", "fd65:1::60/128"} {
		check.True(t, strings.Contains(addrs, want), "addresses without %s:\n%s", want, addrs)
	}
	link := a.IP("-o", "link", "show", "dev", dev)
	check.True(t, strings.Contains(link, "mtu 1400") && strings.Contains(link, "UP"), "device: %s", link)

	routes := []Route{
		to("10.65.2.0/26"), to("fd65:2::/64"), to("10.96.0.0/12"), to("0.0.0.0/1"),
		{Prefix: netip.MustParsePrefix("10.65.3.0/26"), Via: netip.MustParseAddr("10.65.3.0"), OnLink: true, Metric: 7},
		{Prefix: netip.MustParsePrefix("10.65.4.0/26"), Via: netip.MustParseAddr("10.65.2.1")}, // through the first
		{Prefix: netip.MustParsePrefix("fd65:4::/64"), Via: netip.MustParseAddr("fd65:4::1"), OnLink: true, Source: netip.MustParseAddr("2001:db8::1")},
		{Prefix: netip.MustParsePrefix("10.65.5.0/26"), Source: netip.IPv4Unspecified()},
		{Prefix: netip.MustParsePrefix("::/0"), Metric: 4000},
	}
	check.OK(t, h.SetRoutes(routes...))
	want := []string{
		"10.65.2.0/26 dev vxhost0 scope link src 10.65.1.60",
		"fd65:2::/64 dev vxhost0 src fd65:1::60 metric 1024",
		"10.96.0.0/12 dev vxhost0 scope link src 10.65.1.60",
		"0.0.0.0/1 dev vxhost0 scope link src 10.65.1.60",
		"10.65.3.0/26 via 10.65.3.0 dev vxhost0 src 10.65.1.60 metric 7 onlink",
		"10.65.4.0/26 via 10.65.2.1 dev vxhost0 src 10.65.1.60",
		"fd65:4::/64 via fd65:4::1 dev vxhost0 src 2001:db8::1 metric 1024 onlink",
		"10.65.5.0/26 dev vxhost0 scope link",
		"default dev vxhost0 src fd65:1::60 metric 4000",
	}
	a.want(want...)
	slices.Reverse(routes)
	got := a.changes(func() { check.OK(t, h.SetRoutes(routes...)) })
	check.Equal(t, "changes by the same routes", got, "")
	check.Equal(t, "routes", len(slices.Collect(h.Routes())), len(routes))

	// Only what differs changes, new before old; routes with the same key change at once.
	got = a.changes(func() {
		check.OK(t, h.SetRoutes(to("10.65.2.0/26"), to("10.96.0.0/13"),
			Route{Prefix: netip.MustParsePrefix("10.65.3.0/26"), Via: netip.MustParseAddr("10.65.3.1"), OnLink: true, Metric: 7},
			Route{Prefix: netip.MustParsePrefix("fd65:2::/64"), Source: netip.MustParseAddr("2001:db8::1")},
			Route{Prefix: netip.MustParsePrefix("10.65.5.0/26"), Source: netip.MustParseAddr("10.0.0.1")}))
	})
	lines := strings.Split(got, "\n")
	added := slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, "10.96.0.0/13") })
	deleted := slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, "Deleted 10.96.0.0/12") })
	check.True(t, added >= 0 && added < deleted, "changes:\n%s", got)
	check.True(t, !strings.Contains(got, "10.65.2.0/26") && !strings.Contains(got, "Deleted fd65:2::"), "changes:\n%s", got)
	a.want("10.65.2.0/26 dev vxhost0 scope link src 10.65.1.60", "10.96.0.0/13 dev vxhost0 scope link src 10.65.1.60",
		"10.65.3.0/26 via 10.65.3.1 dev vxhost0 src 10.65.1.60 metric 7 onlink", "fd65:2::/64 dev vxhost0 src 2001:db8::1 metric 1024",
		"10.65.5.0/26 dev vxhost0 scope link src 10.0.0.1")
	check.True(t, len(a.repairs) == 0, "a repair of what nobody changed")
}

// What others have stays, whatever happens.
func TestForeign(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	h := a.open(leg())
	foreign := func() string {
		return a.IP("route", "show", "proto", "bird") + a.IP("-6", "route", "show", "proto", "bird") + a.IP("route", "show", "proto", "static")
	}
	a.IP("addr", "add", "192.0.2.9/32", "dev", dev) // with the last address the kernel removes all routes
	for _, r := range []string{"10.65.2.0/26 via 10.0.0.2 proto bird", "fd65:2::/64 via 2001:db8::2 proto bird metric 1024",
		"10.65.9.0/26 dev vxhost0 proto bird", "blackhole 10.65.8.0/26 proto static metric 5"} {
		a.IP(append([]string{"route", "add"}, strings.Fields(r)...)...)
	}
	before := foreign()
	err := h.SetRoutes(to("10.65.2.0/26"), to("fd65:2::/64"), to("10.65.9.0/26"), to("10.65.7.0/26"), Route{Prefix: netip.MustParsePrefix("10.65.8.0/26"), Metric: 5})
	check.ErrorIs(t, "SetRoutes", err, fs.ErrExist)
	var errs RouteErrors
	check.Need(t, errors.As(err, &errs) && len(errs) == 4, "error %v", err)
	text := fmt.Sprint(errs.Unwrap())
	for _, want := range []string{
		"hostnet: route 10.65.2.0/26 src 10.65.1.60: the place is taken by 10.65.2.0/26 via 10.0.0.2 dev eth0 proto bird: file exists",
		"the place is taken by fd65:2::/64 via 2001:db8::2 dev eth0 proto bird metric 1024",
		"10.65.9.0/26 dev vxhost0 proto bird", "taken by blackhole 10.65.8.0/26 proto static metric 5",
	} {
		check.True(t, strings.Contains(text, want), "errors %s, want %s", text, want)
	}
	check.Equal(t, "foreign routes", foreign(), before)
	a.want("10.65.7.0/26 dev vxhost0 scope link src 10.65.1.60")

	// A foreign one in the place of ours wins, and ours comes when it goes.
	a.IP("route", "replace", "10.65.7.0/26", "via", "10.0.0.2", "proto", "bird")
	a.IP("route", "del", "10.65.2.0/26", "proto", "bird")
	a.IP("-6", "route", "del", "fd65:2::/64", "proto", "bird")
	a.comes("10.65.2.0/26 dev vxhost0 scope link src 10.65.1.60", "fd65:2::/64 dev vxhost0 src fd65:1::60 metric 1024")
	a.Until("the replaced route waits", func() bool {
		for r, err := range h.Waiting() {
			if r.Prefix == netip.MustParsePrefix("10.65.7.0/26") && errors.Is(err, fs.ErrExist) {
				return true
			}
		}
		return false
	})
	a.IP("route", "del", "10.65.7.0/26", "proto", "bird")
	a.comes("10.65.2.0/26 dev vxhost0 scope link src 10.65.1.60", "fd65:2::/64 dev vxhost0 src fd65:1::60 metric 1024", "10.65.7.0/26 dev vxhost0 scope link src 10.65.1.60")

	// IPv6 cannot replace one of two, so a foreign one beside ours keeps ours as it is.
	a.IP("-6", "route", "append", "fd65:2::/64", "dev", "eth0", "proto", "bird")
	err = h.SetRoutes(Route{Prefix: netip.MustParsePrefix("fd65:2::/64"), Source: netip.MustParseAddr("2001:db8::1")})
	check.ErrorHas(t, err, "hostnet: route fd65:2::/64 src 2001:db8::1 metric 1024: the place is taken by fd65:2::/64 dev eth0 proto bird")
	check.True(t, strings.Contains(a.IP("-6", "route", "show", "proto", "bird"), "fd65:2::/64 dev eth0"), "the foreign route has gone")

	// IPv6 routes with a gateway become next hops of one route: of these only ours goes.
	hops := func() string { return a.IP("-6", "route", "show", "fd65:3::/64") }
	via := Route{Prefix: netip.MustParsePrefix("fd65:3::/64"), Via: netip.MustParseAddr("fd65:3::1"), OnLink: true}
	check.OK(t, h.SetRoutes(via))
	a.IP("-6", "route", "append", "fd65:3::/64", "via", "2001:db8::2", "proto", "bird")
	a.IP("addr", "add", "192.0.2.10/32", "dev", dev)
	a.IP("addr", "del", "192.0.2.10/32", "dev", dev) // has everything compared
	a.IP("-6", "route", "add", "fd65:77::/64", "dev", dev, "proto", "118")
	a.Until("it was compared", func() bool { return !strings.Contains(strings.Join(a.shown(), " "), "fd65:77::") })
	check.True(t, strings.Contains(hops(), "fd65:3::1") && strings.Contains(hops(), "2001:db8::2"), "next hops %s", hops())
	check.Equal(t, "waiting", len(h.errors(nil)), 0)
	changed := via
	changed.Source = netip.MustParseAddr("2001:db8::1")
	check.ErrorIs(t, "SetRoutes", h.SetRoutes(changed), fs.ErrExist)
	check.True(t, strings.Contains(hops(), "fd65:3::1") && strings.Contains(hops(), "2001:db8::2"), "next hops %s", hops())
	check.OK(t, h.SetRoutes())
	check.True(t, !strings.Contains(hops(), "fd65:3::1") && strings.Contains(hops(), "2001:db8::2"), "next hops %s", hops())

	check.OK(t, h.Close())
	a.want()
	check.True(t, strings.Contains(foreign(), "fd65:2::/64 dev eth0") && strings.Contains(foreign(), "10.65.9.0/26 dev vxhost0"), "foreign routes after Close: %s", foreign())
}

// What somebody deletes comes back, at a bounded rate, and is reported.
func TestRepair(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	h := a.open(leg())
	routes := []Route{to("10.65.2.0/26"), to("fd65:2::/64")}
	check.OK(t, h.SetRoutes(routes...))
	all := []string{"10.65.2.0/26 dev vxhost0 scope link src 10.65.1.60", "fd65:2::/64 dev vxhost0 src fd65:1::60 metric 1024"}
	reported := func(what string, ok func(Repair) bool) {
		t.Helper()
		for end := time.After(netns.Timeout); ; {
			select {
			case r := <-a.repairs:
				if ok(r) {
					return
				}
			case <-end:
				t.Fatalf("%s was not reported", what)
			}
		}
	}
	a.IP("route", "del", "10.65.2.0/26", "dev", dev)
	a.comes(all...)
	reported("the route", func(r Repair) bool {
		return len(r.Routes) == 1 && r.Routes[0].Prefix == routes[0].Prefix && r.Err == nil
	})
	a.IP("route", "flush", "proto", "118")
	a.IP("-6", "route", "flush", "proto", "118")
	a.comes(all...)
	a.IP("addr", "flush", "dev", dev)
	a.comes(all...)
	a.Until("the address is back", func() bool { return strings.Contains(a.IP("addr", "show", "dev", dev), "10.65.1.60/32") })
	reported("the address", func(r Repair) bool { return slices.Contains(r.Addresses, netip.MustParsePrefix("10.65.1.60/32")) })
	a.IP("link", "set", dev, "mtu", "1300")
	reported("the MTU", func(r Repair) bool { return r.MTU == 1300 })
	a.IP("link", "set", dev, "down")
	reported("the state", func(r Repair) bool { return r.Up })
	a.comes(all...)
	// A route of our protocol that is not ours goes.
	a.IP("route", "add", "10.65.77.0/26", "dev", dev, "proto", "118")
	reported("the stranger", func(r Repair) bool { return r.Removed == 1 })
	a.IP("route", "replace", "10.65.2.0/26", "dev", dev, "proto", "118", "scope", "link", "mtu", "1000")
	a.comes(all...)
	a.IP("route", "replace", "10.65.2.0/26", "dev", dev, "proto", "118", "scope", "link", "src", "10.65.1.60", "mtu", "1000")
	a.comes(all...)

	// Somebody who always deletes is followed no faster than the interval.
	for len(a.repairs) > 0 {
		<-a.repairs
	}
	start := time.Now()
	for time.Since(start) < 500*time.Millisecond {
		a.IP("route", "flush", "proto", "118")
	}
	n := len(a.repairs)
	check.True(t, n >= 1 && time.Duration(n) <= time.Since(start)/(50*time.Millisecond)+1, "%d repairs in %v", n, time.Since(start))
	a.comes(all...)
}

// The device goes and comes.
func TestDevice(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	a := &alone{n.Host("host"), t, make(chan Repair, 1000)}
	_, err := Open(&Config{Device: dev, Namespace: a.NS})
	check.ErrorHas(t, err, "hostnet: vxhost0: there is no such device")
	d := a.device()
	h := a.open(leg())
	check.OK(t, h.SetRoutes(to("10.65.2.0/26"), to("fd65:2::/64")))
	all := []string{"10.65.2.0/26 dev vxhost0 scope link src 10.65.1.60", "fd65:2::/64 dev vxhost0 src fd65:1::60 metric 1024"}
	a.want(all...)
	d.Close()
	a.Until("the loss is seen", func() bool { return len(slices.Collect(h.Routes())) == 0 })
	check.ErrorHas(t, h.SetRoutes(to("10.65.2.0/26"), to("fd65:2::/64"), to("10.65.3.0/26")), "hostnet: vxhost0: there is no such device")
	all = append(all, "10.65.3.0/26 dev vxhost0 scope link src 10.65.1.60")
	d = a.device()
	a.comes(all...)
	check.True(t, strings.Contains(a.IP("link", "show", "dev", dev), "mtu 1400"), "the new device has another MTU")
	// At once: another device with the same name.
	d.Close()
	a.device()
	a.comes(all...)
	check.OK(t, h.Close())
	a.want()
}

// Close leaves what was there before, and nothing else; so does a process that is killed, and its successor goes on.
func TestClose(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	a.IP("addr", "add", "10.65.1.60/32", "dev", dev)
	state := func() (s string) {
		all := a.IP("-o", "addr", "show", "dev", dev) + a.IP("route", "show", "table", "all") + a.IP("-6", "route", "show", "table", "all")
		for line := range strings.Lines(all) {
			if !strings.Contains(line, "fe80:") && !strings.Contains(line, "ff00:") { // the kernel's own, in its own time
				s += line
			}
		}
		return s
	}
	a.IP("link", "set", dev, "mtu", "1400", "up")
	before := state()
	h := a.open(leg())
	check.OK(t, h.SetRoutes(to("10.65.2.0/26"), to("fd65:2::/64"), Route{Prefix: netip.MustParsePrefix("10.65.3.0/26"), Table: 300}))
	check.OK(t, h.Close())
	check.OK(t, h.Close())
	check.Equal(t, "state after Close", state(), before)
	check.ErrorIs(t, "SetRoutes", h.SetRoutes(), net.ErrClosed)
	check.ErrorIs(t, "Check", h.Check()[0], net.ErrClosed)

	// A successor finds routes of the former process: those that it wants stay as they are.
	a.IP("route", "add", "10.65.2.0/26", "dev", dev, "proto", "118", "scope", "link", "src", "10.65.1.60")
	a.IP("route", "add", "10.65.6.0/26", "dev", dev, "proto", "118", "scope", "link")
	h = a.open(leg())
	check.Equal(t, "routes before SetRoutes", len(a.shown()), 2)
	got := a.changes(func() { check.OK(t, h.SetRoutes(to("10.65.2.0/26"), to("10.65.3.0/26"))) })
	check.True(t, !strings.Contains(got, "10.65.2.0") && strings.Contains(got, "Deleted 10.65.6.0"), "changes:\n%s", got)
	check.OK(t, h.Close())
	a.want()
}

func TestRouteErrors(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	h := a.open(leg())
	at := netip.MustParseAddr
	for _, c := range []struct {
		route Route
		want  string
	}{
		{Route{}, "hostnet: route invalid Prefix: Prefix: invalid Prefix: must be an IPv4 or IPv6 prefix"},
		{to("10.65.2.1/26"), "hostnet: route 10.65.2.1/26: Prefix: 10.65.2.1/26: must be 10.65.2.0/26, without host bits"},
		{Route{Prefix: netip.MustParsePrefix("10.65.2.0/26"), Via: at("fd00::1")}, "hostnet: route 10.65.2.0/26 via fd00::1: Via: fd00::1: must be the IPv4 address of one router"},
		{Route{Prefix: netip.MustParsePrefix("fd65::/64"), Source: at("10.0.0.1")}, "hostnet: route fd65::/64 src 10.0.0.1: Source: 10.0.0.1: must be an IPv6 address of this host"},
		{Route{Prefix: netip.MustParsePrefix("10.65.2.0/26"), OnLink: true}, "hostnet: route 10.65.2.0/26 onlink: OnLink: true: must be false without Via"},
		{Route{Prefix: netip.MustParsePrefix("10.65.2.0/26"), Table: 255}, "hostnet: route 10.65.2.0/26 table 255: Table: 255: must be 1 to 2147483647 but not 255 (local)"},
		{Route{Prefix: netip.MustParsePrefix("10.65.2.0/26"), Metric: -1}, "hostnet: route 10.65.2.0/26 metric -1: Metric: -1: must be 0 to 2147483647"},
		{Route{Prefix: netip.MustParsePrefix("10.65.2.0/26"), Via: at("10.99.0.1")}, "hostnet: route 10.65.2.0/26 via 10.99.0.1 src 10.65.1.60: no route leads to the gateway 10.99.0.1 through vxhost0; OnLink says that it is there: network is unreachable"},
		{Route{Prefix: netip.MustParsePrefix("fd65:2::/64"), Via: at("fd99::1")}, "hostnet: route fd65:2::/64 via fd99::1 src fd65:1::60 metric 1024: no route leads to the gateway fd99::1 through vxhost0; OnLink says that it is there: no route to host"},
		{Route{Prefix: netip.MustParsePrefix("10.65.2.0/26"), Source: at("10.99.0.1")}, "hostnet: route 10.65.2.0/26 src 10.99.0.1: the source 10.99.0.1 is not an address of this host: invalid argument"},
		{Route{Prefix: netip.MustParsePrefix("fd65:2::/64"), Source: at("fd99::1")}, "hostnet: route fd65:2::/64 src fd99::1 metric 1024: the source fd99::1 is not an address of this host: invalid argument"},
		{Route{Prefix: netip.MustParsePrefix("10.65.2.0/26"), Via: at("10.65.1.60"), OnLink: true}, "hostnet: route 10.65.2.0/26 via 10.65.1.60 onlink src 10.65.1.60: the gateway 10.65.1.60 is an address of this host: invalid argument"},
	} {
		err := h.SetRoutes(to("10.65.7.0/26"), c.route)
		var errs RouteErrors
		check.Need(t, errors.As(err, &errs) && len(errs) == 1, "%v: error %v", c.route, err)
		check.Equal(t, "error", err.Error(), c.want)
		a.want("10.65.7.0/26 dev vxhost0 scope link src 10.65.1.60") // the other is set
	}
	err := h.SetRoutes(to("10.65.7.0/26"), to("10.65.7.0/26"), Route{Prefix: netip.MustParsePrefix("10.65.7.0/26"), Source: at("10.0.0.1")})
	check.ErrorHas(t, err, "hostnet: route 10.65.7.0/26 src 10.0.0.1: there is another one with this prefix and metric")

	// A route waits for its gateway, or its source.
	check.Need(t, h.SetRoutes(Route{Prefix: netip.MustParsePrefix("10.65.2.0/26"), Via: at("10.99.0.1")}, Route{Prefix: netip.MustParsePrefix("10.65.3.0/26"), Source: at("10.98.0.1")}) != nil, "no error")
	a.IP("route", "add", "10.99.0.0/16", "dev", dev)
	a.IP("addr", "add", "10.98.0.1/32", "dev", "lo")
	a.comes("10.65.2.0/26 via 10.99.0.1 dev vxhost0 src 10.65.1.60", "10.65.3.0/26 dev vxhost0 scope link src 10.98.0.1")
}

// Thousands of routes take little time; so does a change among them.
func TestMany(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	h := a.open(leg())
	var routes []Route
	for i := range 10000 {
		routes = append(routes, Route{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(100 + i>>12), byte(i >> 4), byte(i << 4)}), 28)})
	}
	timed := func(what string, most time.Duration, f func()) {
		start := time.Now()
		f()
		took := time.Since(start)
		t.Logf("%s: %v", what, took)
		check.True(t, took < most, "%s: %v", what, took)
	}
	timed("10,000 routes", 20*time.Second, func() { check.OK(t, h.SetRoutes(routes...)) })
	check.Equal(t, "routes", len(a.shown()), len(routes))
	timed("the same again", 5*time.Second, func() { check.OK(t, h.SetRoutes(routes...)) })
	timed("one more", 5*time.Second, func() { check.OK(t, h.SetRoutes(append(routes, to("10.65.2.0/26"))...)) })
	timed("the flush and the repair", 30*time.Second, func() {
		a.IP("route", "flush", "proto", "118")
		a.Until("all are back", func() bool { return strings.Count(a.IP("route", "show", "proto", "118"), "\n") == len(routes)+1 })
	})
	timed("Close", 20*time.Second, func() { check.OK(t, h.Close()) })
	a.want()
}
