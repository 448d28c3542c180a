package evpn

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// FRR is a border leaf, with a network behind a router that only it knows: prefixes and the default route, of IPv4 and IPv6.
func TestBorder(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	us, b, theirs, world := n.Host("us"), n.Router("frr"), n.Host("theirs"), n.Host("world")
	n.Link(us, oursAddr+"/24", b, theirsAddr+"/24")
	kernelLeaf(n, b, theirsAddr, theirs, "100", "500")
	n.Link(world, "203.0.113.2/24,2001:db8:99::2/64", b, "203.0.113.1/24,2001:db8:99::1/64")
	world.Addr("lo", "198.18.0.1/32,2001:db8:fff::1/128")
	world.Route("default", "via", "203.0.113.1")
	world.Route("default", "via", "2001:db8:99::1")
	b.Route("default", "via", "203.0.113.2")
	b.Route("default", "via", "2001:db8:99::2")
	us.Ready()
	frr.Start(t, b, frr.Daemon{Name: "zebra", Config: "vni 500\n"}, leafConfig(65000, theirsAddr, oursAddr, 65000,
		"  advertise ipv6 unicast", "  default-originate ipv4", "  default-originate ipv6", " address-family ipv6 unicast", "  redistribute connected"))
	s := newSite(t, us, oursAddr, Config{Peers: []Peer{peering(theirsAddr, 65000)}})
	_, routed := s.hosts(n)
	s.host.Until("FRR's prefixes", func() bool {
		return s.routes("0.0.0.0/0") == 1 && s.routes("::/0") == 1 && s.routes("203.0.113.0/24") == 1 && s.routes("2001:db8:99::/64") == 1
	})
	routed.Until("IPv4", func() bool { return pings(routed, "203.0.113.2") })
	check.Equal(t, "TTL", routed.PingTTL("198.18.0.1"), 62)
	routed.Until("IPv6", func() bool { return pings(routed, "2001:db8:99::2") })
	check.Equal(t, "hop limit", routed.PingTTL("2001:db8:fff::1"), 62)
	s.healthy("target") // FRR says its default route also without a target
}
