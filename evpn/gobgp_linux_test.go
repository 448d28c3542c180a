package evpn

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/gobgp"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
)

// Two of ours with gobgpd as their route reflector: bridged, routed, and a host that moves. gobgpd 3 drops the one kind of route whose
// community it does not know, that of an IPv6 router; its packets are flooded, and its other routes are there.
func TestGoBGP(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw, rr := n.Switch("sw"), n.Host("rr")
	n.Plug(rr, "192.0.2.9/24", sw)
	gobgp.Reflect(t, rr, 65000, "192.0.2.9", "192.0.2.1", "192.0.2.2")
	var sites [2]*site
	var bridged, routed, mobile [2]*netns.Host
	for i := range sites {
		us, addr := n.Host(fmt.Sprintf("us%d", i+1)), fmt.Sprintf("192.0.2.%d", i+1)
		n.Plug(us, addr+"/24", sw)
		us.Ready()
		sites[i] = newSite(t, us, addr, Config{Peers: []Peer{peering("192.0.2.9", 65000)}})
		bridged[i], routed[i] = sites[i].hosts(n)
		mobile[i] = n.Host(fmt.Sprintf("mobile%d", i+1))
		tap := netns.Open(t, mobile[i], func() (*port.Device, error) { return port.OpenTAP("mobile", nil) })
		check.OK(t, check.Must(sites[i].node.Segment(100, nil))(t).Add(tap, nil))
		mobile[i].Up("mobile")
	}
	router, mac := n.Router("router"), frame.MAC{2, 0, 0, 0, 7, 7}
	sites[0].plug(router, 100, "172.16.0.30/24,2001:db8:16::30/64", mac)

	bridged[0].Until("bridged", func() bool { return pings(bridged[0], "172.16.0.12") && pings(bridged[0], "2001:db8:16::12") })
	routed[0].Until("routed", func() bool { return pings(routed[0], "172.18.2.2") && pings(routed[0], "2001:db8:18:2::2") })
	check.Equal(t, "TTL", routed[0].PingTTL("172.18.2.2"), 62)
	check.Equal(t, "hop limit", routed[0].PingTTL("2001:db8:18:2::2"), 62)
	rr.Until("prefixes and host routes", func() bool {
		for _, p := range []string{"172.18.2.0/24", "172.18.2.2/32", "2001:db8:18:2::/64", "2001:db8:18:2::2/128"} {
			if sites[0].routes(p) != 1 {
				return false
			}
		}
		return true
	})

	pings(bridged[0], "2001:db8:16::30") // a router says in its advertisement that it is one
	bridged[1].Until("the router", func() bool { return pings(bridged[1], "172.16.0.30") && pings(bridged[1], "2001:db8:16::30") })
	h := &host{mac: frame.MAC{2, 0, 0, 0, 9, 9}, ip: netip.MustParseAddr("172.16.0.50")}
	for move := range 4 {
		at, from := move%2, 1-move%2
		mobile[at].Inject("mobile", announcement(h))
		rr.Until("the host where it is", func() bool {
			return sites[at].at(h.mac) == "here" && sites[from].at(h.mac) == sites[at].addr.String()+":4789"
		})
	}
	knows := func(s *site, ip string) (arp.Entry, bool) {
		return s.node.Neighbours(100).Table().Lookup(netip.MustParseAddr(ip))
	}
	if e, ok := knows(sites[0], "2001:db8:16::30"); !ok || e.Flags&arp.Router == 0 {
		t.Errorf("the router is %+v", e)
	}
	_, v4 := knows(sites[1], "172.16.0.30")
	_, v6 := knows(sites[1], "2001:db8:16::30")
	if at := sites[1].at(mac); !v4 || v6 || at != "192.0.2.1:4789" {
		t.Errorf("of the router, gobgpd passed its IPv4 address %v, its IPv6 address %v, its MAC at %q", v4, v6, at)
	}
	for _, s := range sites {
		s.healthy()
	}
}
