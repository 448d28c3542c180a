package control_test

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A row whose place is not to be had waits as a whole, and the next owner's counts meanwhile, or
// an older one of the same owner. The error is about whose row it is.
func TestRowsThatWait(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"first", "second"}})
	onPort := control.MAC{VNI: red, MAC: mac(1), IP: ip(1), Port: "pipe"}
	l.add("first", onPort)
	l.add("second", control.MAC{VNI: red, MAC: mac(1), IP: ip(1), VTEP: at(2)})
	l.add("second", control.MAC{VNI: red, MAC: mac(2), IP: ip(2), VTEP: at(3)})
	l.add("first", control.MAC{VNI: red, MAC: mac(2), IP: ip(3), VTEP: at(4)}, control.MAC{VNI: red, MAC: mac(2), IP: ip(2), Port: "pipe"})
	want := func(what, one, two string, neighbours ...byte) {
		t.Helper()
		if a, b := l.MAC(red, mac(1)), l.MAC(red, mac(2)); a != one || b != two {
			t.Errorf("%s: MACs at %q and %q, want %q and %q", what, a, b, one, two)
		}
		for n := byte(1); n <= 3; n++ {
			m := mac(2)
			if n == 1 {
				m = mac(1)
			}
			if got := l.Neighbour(red, ip(n)); got != m {
				t.Errorf("%s: neighbour %d is %v, want %v", what, n, got, m)
			}
		}
	}
	want("all is there", "pipe", "pipe")
	l.must(l.local.Detach())
	l.Reapply()
	l.wantWaiting("first", 2, control.ErrNoPort)
	want("without the port", "10.0.0.2", "10.0.0.4")
	l.Forget("second")
	l.del("first", control.MAC{VNI: red, MAC: mac(2), IP: ip(3)}, control.MAC{VNI: red, MAC: mac(2), IP: ip(2)})
	if got := l.Neighbour(red, ip(1)); !got.IsZero() {
		t.Errorf("%v is the neighbour of a row that waits", got)
	}
	_, err := l.segment(red).AttachWith(l.pipe, 0, &vswitch.AttachConfig{})
	l.must(err)
	l.Reapply()
	if a := l.MAC(red, mac(1)); a != "pipe" || l.Neighbour(red, ip(1)) != mac(1) {
		t.Errorf("with the port again: at %q", a)
	}

	// Of a flood list, too, what cannot be had is its owner's.
	l.add("second", control.Flood{VNI: red, VTEP: at(5)})
	if err := l.Program("first", control.Update{Add: rows(control.Flood{VNI: red, VTEP: at(6)}, control.Flood{VNI: red, VTEP: at(6), Tunnel: "none"})}); !errors.Is(err, control.ErrNoVTEP) {
		t.Error(err)
	}
	for _, a := range l.segment(red).Attachments() {
		l.must(a.Detach())
	}
	l.Reapply()
	l.wantWaiting("first", 2, control.ErrNoPort)
	l.wantWaiting("second", 1, control.ErrNoVTEP)

	// The MAC of a router waits with its prefixes.
	l.segment(l3vni)
	l.add("first", control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16"), Via: control.Via{VNI: l3vni, MAC: mac(9), VTEP: at(7)}})
	if got := l.MAC(l3vni, mac(9)); got != "10.0.0.7" {
		t.Errorf("a router at %q", got)
	}
	l.must(l.gw.VRF("red").Interface(l3vni).Close())
	l.Reapply()
	l.wantWaiting("first", 3, control.ErrNoInterface)
	if got := l.MAC(l3vni, mac(9)); got != "" {
		t.Errorf("a router without an interface at %q", got)
	}
}

// A next hop that is our own, or on no network of the interface, is refused; with Loose it waits until the addresses of the
// interface change, and again when they change back.
func TestNextHopsThatWait(t *testing.T) {
	l := newLeaf(t, control.Config{})
	route := func(prefix, via string) control.Prefix {
		return control.Prefix{VRF: "red", Prefix: pfx(prefix), Via: control.Via{VNI: red, IP: netip.MustParseAddr(via)}}
	}
	own, far, near, host := route("10.1.0.0/16", "192.168.7.254"), route("10.2.0.0/16", "192.168.8.1"), route("10.3.0.0/16", "192.168.7.1"), route("192.168.9.9/32", "192.168.9.9")
	list := control.Refused(l.Program("bgp", control.Update{Add: rows(own, far, near, host)}))
	if len(list) != 2 || list[0].Row != own || list[1].Row != far ||
		!strings.Contains(list[0].Error(), "IP: 192.168.7.254: is an address of the interface itself; must be") ||
		!strings.Contains(list[1].Error(), "IP: 192.168.8.1: is in none of the networks of the interface; must be in one of [192.168.7.254/24]") {
		t.Fatalf("refused %v", list)
	}
	l.program("bgp", control.Update{Add: rows(own, far, near, host), Loose: true})
	want := func(what string, waits ...control.Row) {
		t.Helper()
		var got []control.Row
		for r, err := range l.Waiting("bgp") {
			if !strings.Contains(err.Error(), "IP: ") {
				t.Errorf("%s: %v: %v", what, r, err)
			}
			got = append(got, r)
		}
		if !slices.Equal(got, waits) {
			t.Errorf("%s: %v wait, want %v", what, got, waits)
		}
		if n := len(l.gw.VRF("red").Routes()); n != 4-len(waits) {
			t.Errorf("%s: %d routes", what, n)
		}
	}
	want("at first", own, far)
	readdress := func(addr string) {
		i := l.gw.VRF("red").Interface(red)
		cfg := i.Config()
		l.must(i.Close())
		cfg.Addresses = []netip.Prefix{pfx(addr)}
		_, err := l.gw.VRF("red").NewInterface(&cfg)
		l.must(err)
		l.Reapply()
	}
	readdress("192.168.8.254/24")
	want("another network", own, near)
	readdress("192.168.7.253/16")
	want("a wider one")
	readdress("192.168.7.1/24")
	want("another's address", far, near)
	readdress("192.168.7.254/24")
	want("at last", own, far)
}

// WatchRoutes tells of the rows that make up the routes there are, and of them alone.
func TestWatchRoutesThatAre(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"first", "second"}})
	route := func(n byte, distance uint8) control.Prefix {
		return control.Prefix{VRF: "red", Prefix: pfx("10.1.0.0/16"), Via: control.Via{VNI: red, IP: ip(n)}, Distance: distance}
	}
	drops := control.Prefix{VRF: "red", Prefix: pfx("10.2.0.0/16")}
	l.add("first", drops, control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)})
	is := map[string]bool{}
	stop := l.WatchRoutes(func(owner string, add, del []control.Row) {
		for _, r := range del {
			if k := owner + " " + r.String(); !is[k] {
				t.Errorf("%s goes, and was not there", k)
			}
			delete(is, owner+" "+r.String())
		}
		for _, r := range add {
			if k := owner + " " + r.String(); is[k] {
				t.Errorf("%s comes, and was there", k)
			} else {
				is[k] = true
			}
		}
	})
	want := func(what string, rows ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(is)); !slices.Equal(got, rows) {
			t.Errorf("%s: %q, want %q", what, got, rows)
		}
	}
	const blackhole, a, b, c = "first prefix 10.2.0.0/16 vrf red blackhole", "first prefix 10.1.0.0/16 vrf red via vni 100 ip 192.168.7.1",
		"first prefix 10.1.0.0/16 vrf red via vni 100 ip 192.168.7.2", "second prefix 10.1.0.0/16 vrf red via vni 100 ip 192.168.7.3"
	want("at first", blackhole)
	l.add("second", route(3, 0))
	want("one route", blackhole, c)
	l.add("first", route(1, 0), route(2, 0))
	want("another owner's come before it", a, b, blackhole)
	l.program("first", control.Update{Del: rows(route(1, 0)), Add: rows(route(1, 0))})
	want("advertised again", a, b, blackhole)
	l.program("first", control.Update{Loose: true, Add: rows(control.Prefix{VRF: "none", Prefix: pfx("10.3.0.0/16")})})
	want("one waits", a, b, blackhole)
	i := l.gw.VRF("red").Interface(red)
	cfg := i.Config()
	l.must(i.Close())
	l.Reapply()
	want("without the interface", blackhole)
	_, err := l.gw.VRF("red").NewInterface(&cfg)
	l.must(err)
	l.Reapply()
	want("with it again", a, b, blackhole)
	l.Forget("first")
	want("without the first owner", c)
	stop()
	l.Forget("second")
	want("nobody watches", c)
}

// Several attachments of a port go by their tags. A row for the port itself waits, and what was written before stays.
func TestAttachmentsOfOnePort(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"first", "second"}})
	plain := control.MAC{VNI: red, MAC: mac(1), Port: "pipe"}
	l.add("first", plain)
	first := l.segment(red).Named("pipe")[0]
	two, err := l.segment(red).Attach(l.pipe, 2)
	l.must(err)
	dest := func(m frame.MAC) frame.Dest {
		d, _ := l.segment(red).FDB().Lookup(m)
		return d
	}
	l.add("first", control.MAC{VNI: red, MAC: mac(2), Port: "pipe.2"}, control.MAC{VNI: red, MAC: mac(3), Port: "pipe.0"})
	if dest(mac(1)) != first.Dest(0) || dest(mac(2)) != two.Dest(0) || dest(mac(3)) != first.Dest(0) {
		t.Errorf("at %v, %v and %v", dest(mac(1)), dest(mac(2)), dest(mac(3)))
	}
	other := plain
	other.MAC = mac(4)
	if err := l.Program("second", control.Update{Add: rows(other)}); err == nil || !strings.Contains(err.Error(), `port "pipe": has 2 attachments in the segment, only the name of one is allowed, such as pipe.0`) {
		t.Error(err)
	}
	l.must(l.Program("second", control.Update{Loose: true, Add: rows(other)}))
	l.must(two.Detach())
	l.Handle(frame.Event{Kind: frame.EventDetached, VNI: red, Dest: two.Dest(0)})
	if dest(mac(4)) != first.Dest(0) || dest(mac(2)) != 0 {
		t.Errorf("when one is left: at %v and %v", dest(mac(4)), dest(mac(2)))
	}
}
