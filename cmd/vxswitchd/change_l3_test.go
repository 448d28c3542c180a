package main

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

// A step is a change, and what is in its error.
type step[T any] struct {
	change T
	want   string
}

// takes makes changes, and sees which are refused, and why.
func takes[T any](t *testing.T, do func(T) error, steps []step[T]) {
	t.Helper()
	for _, x := range steps {
		err := do(x.change)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%+v: %v, want %q", x.change, err, x.want)
		}
	}
}

const two, three = "127.0.0.2", "127.0.0.3"

// Neighbours behave as those of ip neigh.
func TestChangeNeighbours(t *testing.T) {
	r := begin(t, basic(t))
	c, ctx := api.NewClient(r.socket), t.Context()
	mac := func(n int) string { return fmt.Sprintf("02:00:00:00:00:%02x", n) }
	table := func() (list []string) {
		all := check.Must(c.Neighbours(ctx, nil))(t)
		for _, x := range all {
			list = append(list, x.IP+" "+strings.TrimPrefix(x.MAC, "02:00:00:00:00:")+" "+x.Proto)
		}
		slices.Sort(list)
		return append(list, r.macs()...)
	}
	want := func(want ...string) {
		t.Helper()
		if got := table(); !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
	do := func(x api.NeighbourChange) error { return c.ChangeNeighbour(ctx, x) }
	type n = api.NeighbourChange
	takes(t, do, []step[n]{
		{n{Op: "append", VNI: 10, IP: "10.0.10.2"}, `op "append": must be add, replace or del`},
		{n{Op: "add", VNI: 10, IP: "224.0.0.1", MAC: mac(2), Dst: two}, `ip "224.0.0.1": must be the address of one host`},
		{n{Op: "add", VNI: 10, IP: "10.0.10.2", MAC: "01:00:00:00:00:02", Dst: two}, "must be the MAC of one host"},
		{n{Op: "add", VNI: 10, IP: "10.0.10.2", MAC: mac(2), Dst: "239.0.0.1"}, `dst "239.0.0.1": must be the address of one host`},
		{n{Op: "add", VNI: 10, IP: "10.0.10.2", MAC: mac(2), Dst: two, Dev: "x"}, "takes either dst or dev"},
		{n{Op: "add", VNI: 10, IP: "10.0.10.2", MAC: mac(2), Dev: "x", Tunnel: "vx"}, "tunnel: requires dst"},
		{n{Op: "add", VNI: 10, IP: "10.0.10.2", MAC: mac(2), Dst: two, Router: true}, "router: requires an IPv6 address"},
		{n{Op: "add", VNI: 10, IP: "10.0.10.2", MAC: mac(2)}, "dst or dev is required"},
		{n{Op: "add", VNI: 30, IP: "10.0.10.2", MAC: mac(2), Dst: two}, "vni 30: no such segment"},
		{n{Op: "add", VNI: 20, IP: "10.0.10.2", MAC: mac(2), Dst: two}, "vni 20: has no neighbours"},
		{n{Op: "add", VNI: 10, IP: "10.0.10.2", MAC: mac(2), Dev: "tap9"}, `dev "tap9": no such port`},
		{n{Op: "add", VNI: 10, IP: "10.0.10.2", MAC: mac(2), Dst: two, Tunnel: "vy"}, `tunnel "vy": vni 10 has no such tunnel`},
		{n{Op: "add", VNI: 10, IP: "10.0.10.9", MAC: mac(2), Dst: two}, "already has an entry"},
		{n{Op: "replace", VNI: 10, IP: "10.0.10.9", MAC: mac(2), Dst: two}, "is from the file"},
		{n{Op: "del", VNI: 10, IP: "10.0.10.9"}, "is from the file"},
		{n{Op: "del", VNI: 10, IP: "10.0.10.2"}, "has no entry"},
		{n{Op: "del", VNI: 10, IP: "10.0.10.2", MAC: mac(2)}, "del: takes only vni and ip"},
		{n{Op: "add", VNI: 10, IP: "::ffff:10.0.10.2", MAC: mac(2), Dst: two}, ""},
		{n{Op: "add", VNI: 10, IP: "fd00::2", MAC: mac(2), Router: true}, ""},
		{n{Op: "add", VNI: 10, IP: "10.0.10.3", MAC: mac(2), Dst: three}, mac(2) + " is elsewhere in vni 10, dst 127.0.0.2: move it with fdb replace"},
		{n{Op: "add", VNI: 10, IP: "10.0.10.3", MAC: mac(3), Dev: "vx"}, `dev "vx": is a tunnel: use dst with the address of the peer`},
		{n{Op: "add", VNI: 10, IP: "10.0.10.3", MAC: mac(3), Dst: "fd00::3"}, "dst fd00::3: no tunnel of vni 10 has an address of this family"},
		{n{Op: "replace", VNI: 10, IP: "10.0.10.2", MAC: mac(3), Dev: "tap9"}, `dev "tap9": no such port`},
	})
	want("10.0.10.2 02 vxsctl", "10.0.10.9 09 config", "fd00::2 02 vxsctl", "02 127.0.0.2 control", "09 127.0.0.2 static")

	// The MAC moves with its neighbours, and stays while it has one.
	must(t, c.ChangeFDB(ctx, api.FDBChange{Op: api.Replace, VNI: 10, MAC: mac(2), Dst: three}))
	want("10.0.10.2 02 vxsctl", "10.0.10.9 09 config", "fd00::2 02 vxsctl", "02 127.0.0.3 control", "09 127.0.0.2 static")
	takes(t, func(x api.FDBChange) error { return c.ChangeFDB(ctx, x) }, []step[api.FDBChange]{
		{api.FDBChange{Op: api.Replace, VNI: 10, MAC: mac(2), Dev: "tap9"}, `dev "tap9": no such port`},
		{api.FDBChange{Op: api.Del, VNI: 10, MAC: mac(2)}, "has the neighbour 10.0.10.2 in vni 10: delete that"},
	})
	want("10.0.10.2 02 vxsctl", "10.0.10.9 09 config", "fd00::2 02 vxsctl", "02 127.0.0.3 control", "09 127.0.0.2 static")
	takes(t, do, []step[n]{
		{n{Op: "replace", VNI: 10, IP: "10.0.10.2", MAC: mac(3), Dst: two}, ""},
		{n{Op: "del", VNI: 10, IP: "fd00::2"}, ""},
	})
	want("10.0.10.2 03 vxsctl", "10.0.10.9 09 config", "02 127.0.0.3 control", "03 127.0.0.2 control", "09 127.0.0.2 static")
	must(t, c.ChangeFDB(ctx, api.FDBChange{Op: api.Del, VNI: 10, MAC: mac(2)}))
	must(t, do(n{Op: "del", VNI: 10, IP: "10.0.10.2"}))
	want("10.0.10.9 09 config", "09 127.0.0.2 static")
}

// A neighbour that was snooped stays if its replacement is refused.
func TestReplaceSnooped(t *testing.T) {
	n := check.Must(node.New(&node.Options{Owners: []string{owner}}))(t)
	defer n.Close()
	router := frame.MAC{2, 0, 0, 0, 0xff, 0x10}
	must(t, n.Apply(&node.Config{
		VRFs:     []node.VRF{{Name: "red"}},
		Segments: []node.Segment{{VNI: 10, Neighbours: &node.Neighbours{}, Gateway: &node.SegmentGateway{VRF: "red", Gateway: node.Gateway{MAC: router}}}},
	}))
	segment := check.Must(n.Segment(10, nil))(t)
	must(t, segment.Add(port.NewPipe(&port.PipeConfig{Name: "here"}), nil))
	s := newServer(n, silent, nil, nil)
	defer s.close()
	table, ip := n.Neighbours(10).Table(), netip.MustParseAddr("10.0.10.7")
	if o := table.Learn(&arp.Claim{IP: ip, MAC: frame.MAC{2, 0, 0, 0, 0, 7}, From: frame.NewDest(1, 0)}, 5); o != arp.New {
		t.Fatal(o)
	}
	was, _ := table.Lookup(ip)
	for _, x := range []struct {
		body   string
		status int
	}{{`"mac":"02:00:00:00:00:08","dev":"tap9"`, 404}, {`"mac":"02:00:00:00:ff:10","dev":"here"`, 409}} { // that of the gateway
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, httptest.NewRequest("POST", "/v1/neigh", strings.NewReader(`{"op":"replace","vni":10,"ip":"10.0.10.7",`+x.body+`}`)))
		if is, ok := table.Lookup(ip); w.Code != x.status || !ok || is.MAC != was.MAC || is.Origin != was.Origin || is.From != was.From || is.Seen != was.Seen {
			t.Errorf("%d %s: %+v %v, want %+v", w.Code, w.Body, is, ok, was)
		}
	}
}

// Routes behave as those of ip route.
func TestChangeRoutes(t *testing.T) {
	r := begin(t, strings.Replace(basic(t), `{"vni": 20}`, `{"vni": 20, "tunnel": "vx", "gateway": {"vrf": "red", "mac": "02:00:00:00:ff:20"}}`, 1))
	c, ctx := api.NewClient(r.socket), t.Context()
	do := func(x api.RouteChange) error { return c.ChangeRoute(ctx, x) }
	table := func() (list []string) {
		all := check.Must(c.Routes(ctx, api.Query{"vrf": "red"}))(t)
		for _, x := range all {
			if x.Proto == owner {
				list = append(list, x.Prefix+" "+x.Kind+" "+strings.Join(x.Via, ", "))
			}
		}
		return list
	}
	want := func(want ...string) {
		t.Helper()
		got := regexp.MustCompile(`(127\.0\.0\.\d):\d+`).ReplaceAllString(strings.Join(table(), "; "), "$1")
		if got != strings.Join(want, "; ") {
			t.Errorf("%s\nwant %s", got, strings.Join(want, "; "))
		}
	}
	type x = api.RouteChange
	vni, gone, router := frame.VNI(20), frame.VNI(30), "02:00:00:00:00:22"
	takes(t, do, []step[x]{
		{x{Op: "set", Prefix: "10.9.0.0/16"}, `op "set": must be add, append, replace or del`},
		{x{Op: "add", Prefix: "10.9.0.1/16", Via: "10.0.10.2"}, "must have no host bits, as in 10.9.0.0/16"},
		{x{Op: "add", Prefix: "10.9.0.0", Via: "10.0.10.2"}, `prefix "10.9.0.0": must be a prefix such as 10.0.0.0/8`},
		{x{Op: "add", Prefix: "10.9.0.0/16"}, "add: requires a next hop or blackhole"},
		{x{Op: "add", Prefix: "10.9.0.0/16", Via: "10.0.10.2", Blackhole: true}, "takes either a next hop or blackhole"},
		{x{Op: "add", Prefix: "10.9.0.0/16", Via: "10.0.10.2", MAC: router, Dst: two}, "via: not allowed with mac or dst"},
		{x{Op: "add", Prefix: "10.9.0.0/16", MAC: router, VNI: &vni}, "mac: requires dst"},
		{x{Op: "add", Prefix: "10.9.0.0/16", MAC: router, Dst: two}, "dst: requires vni"},
		{x{Op: "add", Prefix: "10.9.0.0/16", Via: "10.0.10.2", Tunnel: "vx"}, "tunnel: requires dst"},
		{x{Op: "add", Prefix: "10.9.0.0/16", Blackhole: true, Weight: 2}, "weight: requires a next hop"},
		{x{Op: "add", Prefix: "10.9.0.0/16", Via: "10.0.20.2"}, "via 10.0.20.2: is in no prefix of a gateway of vrf red: vni is required"},
		{x{Op: "add", Prefix: "10.9.0.0/16", Via: "10.0.20.2", VRF: "blue"}, `vrf "blue": no such VRF`},
		{x{Op: "add", Prefix: "10.9.0.0/16", Via: "224.0.0.1"}, "must be the address of one host"},
		{x{Op: "add", Prefix: "10.9.0.0/16", Via: "10.0.10.2", VNI: &gone}, "vni 30: no such segment"},
		{x{Op: "add", Prefix: "fd09::/64", Via: "10.0.10.2"}, "via: 10.0.10.2: must be of the address family of the prefix, fd09::/64"},
		{x{Op: "add", Prefix: "224.0.0.0/4", Via: "10.0.10.2"}, "prefix: 224.0.0.0/4: is in 224.0.0.0/4, which is not routed"},
		{x{Op: "add", Prefix: "10.9.0.0/16", VNI: &vni}, "via, or mac (lladdr) of a router, is required"},
		{x{Op: "add", Prefix: "10.9.0.0/16", MAC: router, Dst: "fd00::2", VNI: &vni}, "dst fd00::2: no tunnel of vni 20 has an address of this family"},
		{x{Op: "add", Prefix: "10.9.0.0/16", MAC: router, Dst: "127.0.0.1", VNI: &vni}, "dst 127.0.0.1: is this node's own address"},
		{x{Op: "add", Prefix: "10.1.0.0/16", Via: "10.0.10.2"}, "is from the file"},
		{x{Op: "append", Prefix: "10.1.0.0/16", Via: "10.0.10.2"}, "is from the file"},
		{x{Op: "replace", Prefix: "10.1.0.0/16", Via: "10.0.10.2"}, "is from the file"},
		{x{Op: "del", Prefix: "10.1.0.0/16"}, "is from the file"},
		{x{Op: "del", Prefix: "10.9.0.0/16"}, "there is no route to 10.9.0.0/16 in vrf red with metric 0"},
	})
	want()
	takes(t, do, []step[x]{
		{x{Op: "add", Prefix: "10.9.0.0/16", Via: "10.0.10.2", Weight: 2}, ""},
		{x{Op: "add", Prefix: "10.9.0.0/16", Via: "10.0.10.3"}, "use append or replace"},
		{x{Op: "append", Prefix: "10.9.0.0/16", Via: "10.0.10.2"}, "already has the next hop via vni 10 ip 10.0.10.2"},
		{x{Op: "append", Prefix: "10.9.0.0/16", MAC: router, Dst: two, VNI: &vni}, ""},
		{x{Op: "add", Prefix: "10.7.0.0/16", MAC: router, Dst: three, VNI: &vni}, router + " is elsewhere in vni 20, dst 127.0.0.2: it is the router of the route to 10.9.0.0/16"},
		{x{Op: "append", Prefix: "10.8.0.0/16", Blackhole: true}, ""},
		{x{Op: "replace", Prefix: "10.9.0.0/16", MAC: router, Dst: "239.0.0.1", VNI: &vni}, "dst"},
		{x{Op: "replace", Prefix: "10.9.0.0/16", Via: "10.0.99.9", VNI: &vni}, ""},
		{x{Op: "replace", Prefix: "10.9.0.0/16", Via: "10.0.10.2", Weight: 2}, ""},
		{x{Op: "append", Prefix: "10.9.0.0/16", MAC: router, Dst: two, VNI: &vni}, ""},
		{x{Op: "add", Prefix: "10.9.0.0/16", Blackhole: true, Metric: 9}, ""},
		{x{Op: "add", Prefix: "10.1.0.0/16", Via: "10.0.10.7", Metric: 9}, ""}, // waits behind that of the file
		{x{Op: "del", Prefix: "10.9.0.0/16", Via: "10.0.10.3"}, "has no next hop via vni 10 ip 10.0.10.3"},
	})
	want("10.8.0.0/16 blackhole ", "10.9.0.0/16 via vni 10 via 10.0.10.2 weight 2, vni 20 mac 02:00:00:00:00:22 peer 127.0.0.2")
	takes(t, do, []step[x]{{x{Op: "del", Prefix: "10.9.0.0/16", Via: "10.0.10.2"}, ""}})
	want("10.8.0.0/16 blackhole ", "10.9.0.0/16 via vni 20 mac 02:00:00:00:00:22 peer 127.0.0.2")
	takes(t, do, []step[x]{{x{Op: "del", Prefix: "10.9.0.0/16"}, ""}})
	want("10.8.0.0/16 blackhole ", "10.9.0.0/16 blackhole ")
	takes(t, do, []step[x]{
		{x{Op: "del", Prefix: "10.9.0.0/16", Metric: 9}, ""}, {x{Op: "del", Prefix: "10.8.0.0/16", Blackhole: true}, ""}, {x{Op: "del", Prefix: "10.1.0.0/16", Metric: 9}, ""},
	})
	want()
}

// A router is behind one peer: a route, a neighbour or an entry that says otherwise is refused.
func TestRouterInOnePlace(t *testing.T) {
	r := begin(t, strings.Replace(basic(t), `{"vni": 20}`, `{"vni": 20, "tunnel": "vx", "gateway": {"vrf": "red", "mac": "02:00:00:00:ff:20"},
		"fdb": [{"mac": "02:00:00:00:00:33", "remote": "127.0.0.2"}]}`, 1))
	c, ctx := api.NewClient(r.socket), t.Context()
	vni, router := frame.VNI(20), "02:00:00:00:00:22"
	route := func(x api.RouteChange) error { return c.ChangeRoute(ctx, x) }
	fdb := func(x api.FDBChange) error { return c.ChangeFDB(ctx, x) }
	type x = api.RouteChange
	type f = api.FDBChange
	takes(t, fdb, []step[f]{{f{Op: "add", VNI: vni, MAC: router, Dst: two}, ""}})
	takes(t, route, []step[x]{
		{x{Op: "add", Prefix: "10.9.0.0/16", MAC: router, Dst: three, VNI: &vni}, router + " is elsewhere in vni 20, dst 127.0.0.2: move it with fdb replace"},
		{x{Op: "add", Prefix: "10.9.0.0/16", MAC: "02:00:00:00:00:33", Dst: three, VNI: &vni}, "is elsewhere in vni 20: the file has an entry of it"},
		{x{Op: "add", Prefix: "10.9.0.0/16", MAC: "02:00:00:00:00:33", Dst: two, VNI: &vni}, ""},
		{x{Op: "replace", Prefix: "10.9.0.0/16", MAC: router, Dst: two, VNI: &vni}, ""},
	})
	takes(t, fdb, []step[f]{
		{f{Op: "replace", VNI: vni, MAC: router, Dst: three}, router + " is elsewhere in vni 20, dst 127.0.0.2: it is the router of the route to 10.9.0.0/16"},
		{f{Op: "del", VNI: vni, MAC: router}, ""},
	})
	takes(t, route, []step[x]{{x{Op: "replace", Prefix: "10.9.0.0/16", MAC: router, Dst: three, VNI: &vni}, ""}})
}

// Of several VRFs, a route names one.
func TestChangeRouteVRFs(t *testing.T) {
	r := begin(t, `{"vrfs": [{"name": "red"}, {"name": "blue"}], "control": {"socket": "SOCKET"}}`)
	c, ctx := api.NewClient(r.socket), t.Context()
	takes(t, func(x api.RouteChange) error { return c.ChangeRoute(ctx, x) }, []step[api.RouteChange]{
		{api.RouteChange{Op: "add", Prefix: "10.9.0.0/16", Blackhole: true}, "vrf: required, one of blue, red"},
		{api.RouteChange{Op: "add", Prefix: "10.9.0.0/16", Blackhole: true, VRF: "blue"}, ""},
		{api.RouteChange{Op: "del", Prefix: "10.9.0.0/16", VRF: "red"}, "there is no route"},
		{api.RouteChange{Op: "del", Prefix: "10.9.0.0/16", VRF: "blue"}, ""},
	})
}

func TestChangeRouteWithoutVRF(t *testing.T) {
	r := begin(t, `{"control": {"socket": "SOCKET"}}`)
	c, ctx := api.NewClient(r.socket), t.Context()
	takes(t, func(x api.RouteChange) error { return c.ChangeRoute(ctx, x) }, []step[api.RouteChange]{
		{api.RouteChange{Op: "add", Prefix: "10.9.0.0/16", Blackhole: true}, `vrf "": this node has no VRFs`},
		{api.RouteChange{Op: "add", Prefix: "10.9.0.0/16", Blackhole: true, VRF: "red"}, `vrf "red": this node has no VRFs`},
	})
}

// A segment without a gateway of the VRF has no next hops for its routes.
func TestChangeRouteWithoutGateway(t *testing.T) {
	r := begin(t, basic(t))
	vni := frame.VNI(20)
	takes(t, func(x api.RouteChange) error { return api.NewClient(r.socket).ChangeRoute(t.Context(), x) }, []step[api.RouteChange]{
		{api.RouteChange{Op: "add", Prefix: "10.9.0.0/16", VNI: &vni}, "vni 20: has no gateway of vrf red"},
	})
}

// A port whose segment cannot be without it is not deleted.
func TestDeletePortInUse(t *testing.T) {
	c, err := node.Parse([]byte(`{"ports": [{"name": "tun0", "type": "tun"}, {"name": "tap0"}], "vrfs": [{"name": "red"}],
		"segments": [{"vni": 20, "members": [{"port": "tun0"}], "gateway": {"vrf": "red"}}, {"vni": 30, "members": [{"port": "tap0"}]}]}`))
	must(t, err)
	if next, err := deletePort(c, api.PortChange{Op: "del", Name: "tap0"}); err != nil || len(next.Ports) != 1 || len(next.Segments[1].Members) != 0 {
		t.Errorf("%+v %v", next, err)
	}
	_, err = deletePort(c, api.PortChange{Op: "del", Name: "tun0"})
	if want := "ports[tun0]: is in use: segments[vni 20].gateway.mac: required"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Ports are added and deleted with their places in segments. TestSession does it with devices.
func TestChangePorts(t *testing.T) {
	r := begin(t, strings.Replace(basic(t), `{"vni": 20}`, `{"vni": 20, "members": []}`, 1))
	c, ctx := api.NewClient(r.socket), t.Context()
	vni, gone := frame.VNI(20), frame.VNI(30)
	before, _, err := c.Config(ctx)
	must(t, err)
	type x = api.PortChange
	takes(t, func(x api.PortChange) error {
		_, err := c.ChangePort(ctx, x, &api.SetOptions{DryRun: true})
		return err
	}, []step[x]{
		{x{Op: "set", Name: "tap1"}, `op "set": must be add or del`},
		{x{Op: "add"}, `name: required`},
		{x{Op: "add", Name: "tap1", Type: "dummy"}, `type "dummy": must be tap, tun, veth, interface or packet`},
		{x{Op: "add", Name: "tap1", Type: "own"}, `type "own": must be tap, tun, veth, interface or packet`},
		{x{Op: "add", Name: "tap1", MTU: 14}, "mtu: 14: must be 68 to"},
		{x{Op: "add", Name: "tap1", VLAN: 5}, "vlan: requires vni"},
		{x{Op: "add", Name: "tap1", Service: true}, "service: requires vlan"},
		{x{Op: "add", Name: "tap1", VNI: &vni, Service: true}, "service: requires a vlan"},
		{x{Op: "add", Name: "tap1", VNI: &gone}, "vni 30: no such segment"},
		{x{Op: "add", Name: "tap1", VNI: &vni, VLAN: 4095}, "vlan: 4095: must be 1 to 4094"},
		{x{Op: "del", Name: "tap1"}, `ports: there is no "tap1"`},
		{x{Op: "del", Name: "tap1", MTU: 1400}, "del: takes only name"},
	})
	done, err := c.ChangePort(ctx, x{Op: "add", Name: "tap1", MTU: 1400, Queues: 2, VNI: &vni, VLAN: 5}, &api.SetOptions{DryRun: true})
	must(t, err)
	if got := fmt.Sprint(len(done.Differences), done.Applied, " ", done.Differences[0].Path, " ", string(done.Differences[0].New), " ", string(done.Differences[1].New)); got !=
		`2 false ports [{"mtu":1400,"name":"tap1","noOffload":false,"queues":2,"type":"tap"}] [{"port":"tap1","vlan":5}]` {
		t.Errorf("%s", got)
	}
	if after, _, err := c.Config(ctx); err != nil || string(after) != string(before) {
		t.Errorf("a dry run changed\n%s\nto\n%s, %v", before, after, err)
	}
}
