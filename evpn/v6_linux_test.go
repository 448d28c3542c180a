package evpn

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/gobgp"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Two of ours whose VTEPs and sessions have IPv6 addresses: between them, and with gobgpd as the reflector.
func TestIPv6(t *testing.T) {
	t.Parallel()
	for name, peer := range map[string]func(i int) string{
		"full mesh": func(i int) string { return fmt.Sprintf("2001:db8::%d", 2-i) },
		"reflector": func(int) string { return "2001:db8::9" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := netns.New(t)
			sw := n.Switch("sw")
			if name == "reflector" {
				rr := n.Host("rr")
				n.Plug(rr, "2001:db8::9/64", sw)
				gobgp.Reflect(t, rr, 65000, "192.0.2.9", "2001:db8::1", "2001:db8::2")
			}
			p := newPair(t, n, sw, "2001:db8::%d/64", func(i int) Config { return Config{Peers: []Peer{peering(peer(i), 65000)}} })
			p.bridged[0].Until("bridged", func() bool { return pings(p.bridged[0], "172.16.0.12") && pings(p.bridged[0], "2001:db8:16::12") })
			p.routed[0].Until("routed", func() bool { return pings(p.routed[0], "172.18.2.2") && pings(p.routed[0], "2001:db8:18:2::2") })
			check.Equal(t, "TTL", p.routed[0].PingTTL("172.18.2.2"), 62)
			check.Equal(t, "hop limit", p.routed[1].PingTTL("2001:db8:18:1::2"), 62)
			for i, s := range p.sites {
				other := 2 - i
				s.host.Until("host routes, MACs and neighbours", func() bool {
					_, known := s.node.Neighbours(100).Table().Lookup(netip.MustParseAddr(fmt.Sprintf("2001:db8:16::%d", 10+other)))
					return known && s.at(macIn(other, 1)) == fmt.Sprintf("[2001:db8::%d]:4789", other) && s.routes(fmt.Sprintf("172.18.%d.2/32", other)) == 1 &&
						s.routes(fmt.Sprintf("2001:db8:18:%d::2/128", other)) == 1 && s.routes(fmt.Sprintf("2001:db8:18:%d::/64", other)) == 1
				})
				for _, x := range s.healthy().Segments {
					check.Equal(t, "VTEPs", x.VTEPs, 1)
					check.Equal(t, "VTEP", x.VTEP, s.addr)
				}
			}
		})
	}
}

// Two of ours have sessions between link-local addresses. The interface is given by name, or by number.
func TestLinkLocal(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw := n.Switch("sw")
	var us, bridged [2]*netns.Host
	var addrs, zones [2]string
	for i := range us {
		us[i] = n.Host(fmt.Sprintf("us%d", i+1))
		n.Plug(us[i], fmt.Sprintf("192.0.2.%d/24", i+1), sw)
		us[i].Ready()
		addrs[i], zones[i] = linkLocal(t, us[i], "eth0")
	}
	zones[0] = "eth0"
	var sites [2]*site
	for i := range sites {
		p := peering(addrs[1-i]+"%"+zones[i], 65000)
		p.Passive = i == 1
		at := netip.MustParseAddrPort("[" + addrs[i] + "%" + zones[i] + "]:179")
		sites[i] = newSite(t, us[i], fmt.Sprintf("192.0.2.%d", i+1), Config{Listen: []netip.AddrPort{at}, Peers: []Peer{p}})
		bridged[i], _ = sites[i].hosts(n)
	}
	bridged[0].Until("bridged", func() bool { return pings(bridged[0], "172.16.0.12") })
	for _, s := range sites {
		s.healthy()
	}
}

// FRR 8 has IPv4 VTEPs only: sessions have IPv6 addresses, global or link-local ones.
func TestIPv6FRR(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"global", "link-local"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := netns.New(t)
			us, b, theirs := n.Host("us"), n.Router("frr"), n.Host("theirs")
			n.Link(us, oursAddr+"/24,2001:db8::1/64", b, theirsAddr+"/24,2001:db8::2/64")
			kernelLeaf(n, b, theirsAddr, theirs, "100", "500")
			b.IP("addr", "add", "172.16.0.1/24", "dev", "br100")
			theirs.Route("default", "via", "172.16.0.1")
			us.Ready()
			b.Ready()
			from, to, at, more := "2001:db8::1", "2001:db8::2", "2001:db8::1", ""
			if name == "link-local" {
				from, _ = linkLocal(t, us, "eth0")
				to, _ = linkLocal(t, b, "eth0")
				more, to, at = " neighbor "+from+" interface eth0", to+"%eth0", from+"%eth0"
			}
			leaf := frr.Start(t, b, frr.Daemon{Name: "zebra", Config: "vni 500\n"}, leafConfig(65000, theirsAddr, from, 65000, " exit-address-family", more))
			s := newSite(t, us, oursAddr, Config{Listen: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(at), 179)}, Peers: []Peer{peering(to, 65000)}})
			bridged, routed := s.hosts(n)
			bridged.Until("bridged", func() bool { return pings(bridged, "172.16.0.2") })
			routed.Until("routed", func() bool { return pings(routed, "172.16.0.2") })
			theirs.Until("routed from FRR", func() bool { return pings(theirs, "172.18.1.2") })
			b.Until("our routes in FRR", func() bool {
				return leaf.HasEVPN("[3]:[0]:[32]:[192.0.2.1]") && leaf.HasEVPN("[5]:[0]:[24]:[172.18.1.0]") &&
					slices.Contains(b.Peers("vx100", macIn(1, 1).String()), oursAddr)
			})
			s.healthy()
		})
	}
}
