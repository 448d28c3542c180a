package l3

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Addresses of the gateway and of next hops are those of hosts, and not those that the prefix has
// for itself and for broadcasts.
func TestGatewayAddresses(t *testing.T) {
	send := func(frame.Dest, *frame.Frame) bool { return true }
	for _, c := range []struct {
		addr string
		ok   bool
	}{
		{"10.0.0.1/24", true}, {"10.0.0.0/31", true}, {"10.0.0.1/31", true}, {"10.0.0.0/32", true}, {"10.0.0.255/23", true},
		{"fd00::1/64", true}, {"fd00::/127", true}, {"fd00::/128", true}, {"fd00::ffff:ffff:ffff:ffff/64", true}, {"fe80::1/64", true},
		{"10.0.0.0/24", false}, {"10.0.0.255/24", false}, {"10.0.0.3/30", false}, {"0.0.0.1/8", false}, {"255.255.255.255/32", false},
		{"127.0.0.1/8", false}, {"224.0.0.1/4", false}, {"240.0.0.1/24", false},
		{"fd00::/64", false}, {"fe80::/64", false}, {"ff02::1/64", false}, {"::/0", false}, {"::1/128", false},
	} {
		g := check.Must(NewGateway(nil))(t)
		table := check.Must(arp.NewTable(nil))(t)
		n, err := arp.NewResponder(&arp.Config{Table: table})
		check.OK(t, err)
		p := netip.MustParsePrefix(c.addr)
		_, err = g.VRF("").NewInterface(&InterfaceConfig{VNI: 1, MAC: frame.MAC{2, 0, 0, 0, 0, 1}, Addresses: []netip.Prefix{p}, Neighbours: n, Send: send})
		if (err == nil) != c.ok || err != nil && (!strings.Contains(err.Error(), "InterfaceConfig.Addresses[0]: "+c.addr+": is ") || !strings.Contains(err.Error(), "must be the address of one host")) {
			t.Errorf("%s: %v", c.addr, err)
		}
	}

	g, _ := NewGateway(nil)
	table, _ := arp.NewTable(nil)
	n, _ := arp.NewResponder(&arp.Config{Table: table})
	v := g.VRF("")
	i, err := v.NewInterface(&InterfaceConfig{
		VNI: 1, MAC: frame.MAC{2, 0, 0, 0, 0, 1}, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("fd00::1/64")}, Neighbours: n, Send: send,
	})
	check.OK(t, err)
	for s, ok := range map[string]bool{
		"10.0.0.2": true, "10.0.0.254": true, "10.0.0.255": false, "10.0.0.0": false, "255.255.255.255": false, "0.0.0.1": false, "224.0.0.1": false, "127.0.0.1": false,
		"fd00::2": true, "fd00::": false, "ff02::1": false, "::": false, "::1": false, "fe80::1": true,
	} {
		ip := netip.MustParseAddr(s)
		to := netip.MustParsePrefix("192.0.2.0/24")
		if ip.Is6() {
			to = netip.MustParsePrefix("2001:db8::/32")
		}
		err := v.Add(Route{Prefix: to, Via: []NextHop{{Interface: i, IP: ip}}})
		if (err == nil) != ok || err != nil && (!strings.Contains(err.Error(), s+": is ") || !strings.Contains(err.Error(), "must be the address of one host")) {
			t.Errorf("next hop %s: %v", s, err)
		}
	}
}

// An address inside another interface's prefix is the longer match, also the prefix's own first or last address, whatever
// comes first; the other's routes are back when it has gone.
func TestAddressInsidePrefix(t *testing.T) {
	send := func(frame.Dest, *frame.Frame) bool { return true }
	for _, wideFirst := range []bool{true, false} {
		g, err := NewGateway(nil)
		check.OK(t, err)
		v := g.VRF("")
		add := func(vni frame.VNI, addr string) *Interface {
			t.Helper()
			table := check.Must(arp.NewTable(nil))(t)
			n := check.Must(arp.NewResponder(&arp.Config{Table: table}))(t)
			i := check.Must(v.NewInterface(&InterfaceConfig{VNI: vni, MAC: frame.MAC{2, 0, 0, 0, 0, byte(vni)}, Addresses: []netip.Prefix{netip.MustParsePrefix(addr)}, Neighbours: n, Send: send}))(t)
			return i
		}
		want := func(addr string, kind routeKind, vni frame.VNI) {
			t.Helper()
			r, ok := v.routes.Load().Lookup(netip.MustParseAddr(addr))
			if !ok || r.kind != kind || r.self.cfg.VNI != vni {
				t.Errorf("%s: %+v", addr, r)
			}
		}
		var inside []*Interface
		narrow := func() { inside = []*Interface{add(2, "10.1.0.0/32"), add(3, "10.1.0.255/32"), add(4, "10.1.0.9/32")} }
		if !wideFirst {
			narrow()
		}
		wide := add(1, "10.1.0.1/24")
		if wideFirst {
			narrow()
		}
		for range 2 {
			want("10.1.0.0", local, 2)
			want("10.1.0.255", local, 3)
			want("10.1.0.9", local, 4)
			want("10.1.0.10", connected, 1)
			want("10.1.0.1", local, 1)
			check.OK(t, wide.Close())
			want("10.1.0.0", local, 2)
			if _, ok := v.routes.Load().Lookup(netip.MustParseAddr("10.1.0.10")); ok {
				t.Error("a route is left")
			}
			wide = add(1, "10.1.0.1/24")
		}
		for k, i := range inside {
			if k%2 == 0 {
				check.OK(t, i.Hold())
			} else {
				check.OK(t, i.Close())
			}
		}
		v.Release()
		want("10.1.0.0", blackhole, 1)
		want("10.1.0.255", blackhole, 1)
		want("10.1.0.9", connected, 1)
		for _, s := range []string{"10.1.0.1/32", "10.1.0.1/25", "10.1.0.7/24"} {
			table, _ := arp.NewTable(nil)
			n, _ := arp.NewResponder(&arp.Config{Table: table})
			_, err := v.NewInterface(&InterfaceConfig{VNI: 9, MAC: frame.MAC{2, 0, 0, 0, 0, 9}, Addresses: []netip.Prefix{netip.MustParsePrefix(s)}, Neighbours: n, Send: send})
			if err == nil || !strings.Contains(err.Error(), "is on VNI 1 already") {
				t.Errorf("%s: %v", s, err)
			}
		}
	}
}

// A prefix inside another has the same last address: it stays a broadcast address when the outer one goes.
func TestNestedBroadcast(t *testing.T) {
	send := func(frame.Dest, *frame.Frame) bool { return true }
	g := check.Must(NewGateway(nil))(t)
	v := g.VRF("")
	add := func(vni frame.VNI, addr string) *Interface {
		table, _ := arp.NewTable(nil)
		n, _ := arp.NewResponder(&arp.Config{Table: table})
		i := check.Must(v.NewInterface(&InterfaceConfig{VNI: vni, MAC: frame.MAC{2, 0, 0, 0, 0, byte(vni)}, Addresses: []netip.Prefix{netip.MustParsePrefix(addr)}, Neighbours: n, Send: send}))(t)
		return i
	}
	wide := add(1, "10.1.0.1/24")
	add(2, "10.1.0.129/25")
	check.OK(t, wide.Close())
	r, ok := v.routes.Load().Lookup(netip.MustParseAddr("10.1.0.255"))
	if !ok || r.kind != blackhole {
		t.Errorf("a broadcast to 10.1.0.128/25 is kind %v of %d, not a blackhole", r.kind, r.self.cfg.VNI)
	}
}
