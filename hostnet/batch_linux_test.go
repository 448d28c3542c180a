package hostnet

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
)

// numbered is the route i of many, and how "ip route" prints it.
func numbered(i int) (Route, string) {
	p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 100, byte(i >> 8), byte(i)}), 32)
	return Route{Prefix: p}, p.Addr().String() + " dev vxhost0 scope link src 10.65.1.60"
}

// Of the requests in one system call the kernel carries out those that it does not refuse, the first and the last of a batch
// as well; and it may refuse all.
func TestBatch(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	h := a.open(leg())
	taken := []int{0, 1, batch - 1, batch, 2*batch + 5, 3*batch - 1, 3 * batch}
	var routes, all []Route
	var want []string
	for i := range 3*batch + 1 {
		r, line := numbered(i)
		if routes = append(routes, r); !slices.Contains(taken, i) {
			want = append(want, line)
		}
	}
	for _, i := range taken {
		a.IP("route", "add", routes[i].Prefix.String(), "dev", "eth0", "proto", "static")
	}
	var refused RouteErrors
	err := h.SetRoutes(routes...)
	check.True(t, errors.As(err, &refused) && errors.Is(err, fs.ErrExist) && len(refused) == len(taken), "refused: %v", err)
	for k, e := range refused {
		check.Equal(t, "refused", e.Route.Prefix, routes[taken[k]].Prefix)
	}
	a.want(want...)
	check.OK(t, h.SetRoutes())
	a.want()

	for _, r := range routes {
		r.Via = netip.MustParseAddr("198.51.100.1") // to which no route leads
		all = append(all, r)
	}
	err = h.SetRoutes(all...)
	check.True(t, errors.As(err, &refused) && errors.Is(err, unix.ENETUNREACH) && len(refused) == len(all), "all: %.300v", err)
	a.want()
	check.OK(t, h.SetRoutes(routes[2:100]...))
	check.Equal(t, "routes", len(a.shown()), 98)
}

// Each request has its own error, and none is waited for.
func TestBatchErrors(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	h := a.open(leg())
	check.OK(t, h.SetRoutes(to("10.65.2.0/26")))
	h.op.Lock()
	h.mu.Lock()
	before := h.index
	h.index = 1 << 20
	h.mu.Unlock()
	var requests []*nl.NetlinkRequest
	for _, p := range []string{"10.65.3.0/26", "10.65.4.0/26"} {
		requests = append(requests, h.routeRequest(unix.RTM_NEWROUTE, unix.NLM_F_CREATE, Route{Prefix: netip.MustParsePrefix(p), Table: DefaultTable}))
	}
	errs := h.send(requests)
	h.mu.Lock()
	h.index = before
	h.mu.Unlock()
	h.op.Unlock()
	check.Equal(t, "answers", len(errs), 2)
	check.ErrorIs(t, "first", errs[0], unix.ENODEV)
	check.ErrorIs(t, "second", errs[1], unix.ENODEV)
	check.Equal(t, "no requests", len(h.send(nil)), 0)
}

// Differences in any order come to what SetRoutes makes of the whole.
func TestUpdateRoutes(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	host := n.Host("host")
	netns.Open(t, host, func() (*port.Device, error) { return port.OpenTAP("tap0", nil) })
	h := check.Must(Open(&Config{Device: "tap0", Namespace: host.NS, Sole: true, Addresses: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/32")}}))(t)
	defer h.Close()
	a := &alone{Host: host, t: t}
	r := rand.New(rand.NewPCG(22, 7))
	want := map[netip.Prefix]Route{}
	some := func() Route {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 3, byte(1 + r.IntN(6)), 0}), 24)
		return Route{Prefix: p, Via: netip.AddrFrom4([4]byte{10, 3, byte(100 + r.IntN(2)), 0}), OnLink: true, MAC: frame.MAC{2, 0, 0, 0, 0, byte(1 + r.IntN(2))}}
	}
	macs := map[netip.Addr]frame.MAC{} // of one next hop, one
	for range 60 {
		var add, del []Route
		given := map[netip.Prefix]bool{}
		for range r.IntN(4) {
			x := some()
			if m, ok := macs[x.Via]; ok {
				x.MAC = m
			}
			if macs[x.Via] = x.MAC; !given[x.Prefix] {
				add, given[x.Prefix] = append(add, x), true
			}
		}
		for range r.IntN(4) {
			x := some()
			if has, ok := want[x.Prefix]; ok && r.IntN(4) > 0 {
				x = has
			}
			if del = append(del, x); want[x.Prefix] == x {
				delete(want, x.Prefix)
			}
		}
		for _, x := range add {
			want[x.Prefix] = x
		}
		check.OK(t, h.UpdateRoutes(add, del))
		used := map[string]bool{}
		var lines []string
		for _, x := range want {
			lines = append(lines, fmt.Sprintf("%v via %v dev tap0 src 10.3.0.0 onlink", x.Prefix, x.Via))
			used[fmt.Sprintf("%v %v", x.Via, x.MAC)] = true
		}
		a.want(lines...)
		var known []string
		for _, m := range words.FindAllStringSubmatch(host.IP("-4", "neigh", "show", "dev", "tap0"), -1) {
			known = append(known, m[1]+" "+m[2])
		}
		slices.Sort(known)
		check.Slice(t, "neighbours", known, slices.Sorted(maps.Keys(used)))
		check.Equal(t, "routes", len(slices.Collect(h.Routes())), len(want))
	}
	check.Equal(t, "repair", h.repair().String(), "")

	// The error is that of the routes of the call; those that wait come when they can.
	host.IP("route", "add", "10.3.77.0/24", "dev", "lo", "proto", "static")
	blocked := Route{Prefix: netip.MustParsePrefix("10.3.77.0/24"), Via: netip.MustParseAddr("10.3.77.0"), OnLink: true}
	free := Route{Prefix: netip.MustParsePrefix("10.3.78.0/24"), Via: netip.MustParseAddr("10.3.78.0"), OnLink: true}
	wrong := Route{Prefix: netip.MustParsePrefix("10.3.79.1/24")}
	err := h.UpdateRoutes([]Route{blocked, free, wrong}, nil)
	var errs RouteErrors
	check.True(t, errors.As(err, &errs) && len(errs) == 2 && errors.Is(err, fs.ErrExist), "%v", err)
	check.True(t, strings.Contains(strings.Join(a.shown(), "\n"), "10.3.78.0/24"), "%v", a.shown())
	check.OK(t, h.UpdateRoutes(nil, []Route{free}))
	host.IP("route", "del", "10.3.77.0/24", "dev", "lo", "proto", "static")
	host.Until("the place is taken", func() bool { return strings.Contains(strings.Join(a.shown(), "\n"), "10.3.77.0/24 via") })
	check.OK(t, h.UpdateRoutes(nil, []Route{blocked, free}))
	check.Equal(t, "routes", len(a.shown()), len(want))
	check.OK(t, h.Close())
	check.True(t, h.UpdateRoutes(nil, nil) != nil, "a closed Host")
}
