package evpn

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// unnumberedLink joins two hosts. Their VTEPs, 192.0.2.1 and 192.0.2.2, are on the loopback device, and routed by link-local addresses.
func unnumberedLink(n *netns.Net, hosts [2]*netns.Host) {
	n.Link(hosts[0], "", hosts[1], "")
	var addrs [2]string
	for i, h := range hosts {
		h.IP("addr", "add", fmt.Sprintf("192.0.2.%d/32", i+1), "dev", "lo")
		h.Up("lo")
		h.Ready()
		h.Until("a link-local address", func() bool {
			out := h.IP("-6", "-o", "addr", "show", "dev", "eth0", "scope", "link", "-tentative")
			if f := strings.Fields(out); len(f) > 3 {
				addrs[i], _, _ = strings.Cut(f[3], "/")
			}
			return addrs[i] != ""
		})
	}
	for i, h := range hosts {
		h.IP("route", "add", fmt.Sprintf("192.0.2.%d/32", 2-i), "via", "inet6", addrs[1-i], "dev", "eth0", "src", fmt.Sprintf("192.0.2.%d", i+1))
	}
}

// anyV6 is where sessions of learned addresses are taken.
var anyV6 = netip.MustParseAddrPort("[::]:179")

// onEth0 has sessions with the router of eth0.
func onEth0(as uint32, of RemoteAS) Config {
	return Config{AS: as, Peers: []Peer{{Interface: "eth0", AS: of, Retry: 100 * time.Millisecond, Hold: 9 * time.Second}}}
}

// Two of ours at the ends of a link. The peer goes from the settings, and comes back.
func TestUnnumbered(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	us := [2]*netns.Host{n.Host("us1"), n.Host("us2")}
	unnumberedLink(n, us)
	var p pair
	for i := range us {
		c := onEth0(65001+uint32(i), External)
		c.Listen = append(c.Listen, anyV6)
		p.sites[i] = newSite(t, us[i], fmt.Sprintf("192.0.2.%d", i+1), c)
		p.bridged[i], p.routed[i] = p.sites[i].hosts(n)
	}
	p.reach()
	for _, s := range p.sites {
		s.healthy()
	}
	s := p.sites[0]
	was := s.speaker.cfg
	with := was
	with.Peers = nil
	check.OK(t, s.speaker.Configure(&with))
	us[0].Until("no VTEPs without a peer", func() bool { return s.floods(100) == 0 })
	check.OK(t, s.speaker.Configure(&was))
	p.reach()
}

// A leaf of FRR at the other end of a link.
func TestUnnumberedFRR(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	us, leaf, theirs := n.Host("us"), n.Router("frr"), n.Host("theirs")
	unnumberedLink(n, [2]*netns.Host{us, leaf})
	kernelLeaf(n, leaf, theirsAddr, theirs, "100", "500")
	leaf.IP("addr", "add", "172.16.0.1/24", "dev", "br100")
	theirs.Route("default", "via", "172.16.0.1")
	f := frr.Start(t, leaf, frr.Daemon{Name: "zebra", Config: "vni 500\ninterface eth0\n no ipv6 nd suppress-ra\n"}, frr.Daemon{Name: "bgpd", Config: `router bgp 65002
 bgp router-id 192.0.2.2
 no bgp default ipv4-unicast
 no bgp ebgp-requires-policy
 neighbor eth0 interface remote-as external
 neighbor eth0 timers connect 1
 address-family ipv4 unicast
  redistribute connected
 address-family l2vpn evpn
  neighbor eth0 activate
  advertise-all-vni
  advertise ipv4 unicast
`})
	c := onEth0(65001, 65002)
	c.Listen = append(c.Listen, anyV6)
	s := newSite(t, us, oursAddr, c)
	bridged, routed := s.hosts(n)
	bridged.Until("bridged", func() bool { return pings(bridged, "172.16.0.2") })
	routed.Until("routed", func() bool { return pings(routed, "172.16.0.2") })
	theirs.Until("routed from FRR", func() bool { return pings(theirs, "172.18.1.2") })
	leaf.Until("our routes in FRR", func() bool {
		return f.HasEVPN("[3]:[0]:[32]:[192.0.2.1]") && f.HasEVPN("[5]:[0]:[24]:[172.18.1.0]") && f.HasEVPN("[2]:[0]:[48]:["+macIn(1, 1).String()+"]")
	})
	s.healthy("as-loop", "underlay") // FRR says the address of its VTEP, too
}
