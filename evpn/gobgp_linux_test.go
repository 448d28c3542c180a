package evpn

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/gobgp"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Two of ours with gobgpd as their route reflector: bridged, routed, and a host that moves. gobgpd 3 drops the one kind of route whose
// community it does not know, that of an IPv6 router; its packets are flooded, and its other routes are there.
func TestGoBGP(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw, rr := n.Switch("sw"), n.Host("rr")
	n.Plug(rr, "192.0.2.9/24", sw)
	gobgp.Reflect(t, rr, 65000, "192.0.2.9", "192.0.2.1", "192.0.2.2")
	p := newPair(t, n, sw, "192.0.2.%d/24", clientOf)
	mobile := p.mobile(n)
	router, mac := n.Router("router"), frame.MAC{2, 0, 0, 0, 7, 7}
	p.sites[0].plug(router, 100, "172.16.0.30/24,2001:db8:16::30/64", mac)

	p.bridged[0].Until("bridged", func() bool { return pings(p.bridged[0], "172.16.0.12") && pings(p.bridged[0], "2001:db8:16::12") })
	p.routed[0].Until("routed", func() bool { return pings(p.routed[0], "172.18.2.2") && pings(p.routed[0], "2001:db8:18:2::2") })
	check.Equal(t, "TTL", p.routed[0].PingTTL("172.18.2.2"), 62)
	check.Equal(t, "hop limit", p.routed[0].PingTTL("2001:db8:18:2::2"), 62)
	rr.Until("prefixes and host routes", func() bool {
		for _, to := range []string{"172.18.2.0/24", "172.18.2.2/32", "2001:db8:18:2::/64", "2001:db8:18:2::2/128"} {
			if p.sites[0].routes(to) != 1 {
				return false
			}
		}
		return true
	})

	pings(p.bridged[0], "2001:db8:16::30") // a router says in its advertisement that it is one
	p.bridged[1].Until("the router", func() bool { return pings(p.bridged[1], "172.16.0.30") && pings(p.bridged[1], "2001:db8:16::30") })
	h := &host{mac: frame.MAC{2, 0, 0, 0, 9, 9}, ip: netip.MustParseAddr("172.16.0.50")}
	for move := range 4 {
		p.move(h, mobile, move%2)
	}
	knows := func(s *site, ip string) (arp.Entry, bool) {
		return s.node.Neighbours(100).Table().Lookup(netip.MustParseAddr(ip))
	}
	if e, ok := knows(p.sites[0], "2001:db8:16::30"); !ok || e.Flags&arp.Router == 0 {
		t.Errorf("the router is %+v", e)
	}
	_, v4 := knows(p.sites[1], "172.16.0.30")
	_, v6 := knows(p.sites[1], "2001:db8:16::30")
	if at := p.sites[1].at(mac); !v4 || v6 || at != "192.0.2.1:4789" {
		t.Errorf("of the router, gobgpd passed its IPv4 address %v, its IPv6 address %v, its MAC at %q", v4, v6, at)
	}
	for _, s := range p.sites {
		s.healthy()
	}
}
