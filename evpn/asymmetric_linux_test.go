package evpn

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
)

// anycast returns a gateway that others have too.
func anycast(n byte, addrs ...string) node.Gateway {
	return node.Gateway{MAC: frame.MAC{2, 0, 0, 0, 0xfe, n}, VTEPMAC: frame.MAC{2, 0, 0, 0, 0xfd, n}, Anycast: true, Addresses: prefixes(addrs...)}
}

// FRR and ours are gateways of the same segments, with the same addresses and MACs. Asymmetric IRB routes once, where the packet comes
// in (RFC 9135, section 4.2): to the host's segment, and nothing by an L3VNI.
func TestAsymmetric(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vnis        []string // of FRR
		zebra       string
		vrf         VRF
		there, back int // TTL of what FRR's host sends ours, and of what ours sends FRR's
	}{
		"no L3VNI":       {vnis: []string{"100", "200"}, there: 63, back: 63},
		"no host routes": {vnis: []string{"100", "500"}, zebra: "vni 500\n", vrf: VRF{Name: "red", NoHostRoutes: true}, there: 62, back: 63},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := netns.New(t)
			us, b, theirs := n.Host("us"), n.Router("frr"), n.Host("theirs")
			n.Link(us, oursAddr+"/24", b, theirsAddr+"/24")
			kernelLeaf(n, b, theirsAddr, theirs, c.vnis...)
			gws := map[frame.VNI]node.Gateway{
				100: anycast(1, "172.16.0.1/24", "2001:db8:16::1/64"),
				200: anycast(2, "172.18.1.1/24", "2001:db8:18:1::1/64"),
			}
			for i, vni := range c.vnis {
				switch vni {
				case "500":
					gws[500] = node.Gateway{MAC: frame.MAC{2, 0, 0, 0, 5, 1}}
				default:
					g := gws[frame.VNI(100*(i+1))]
					b.SetMAC("br"+vni, g.MAC.String())
					b.Addr("br"+vni, g.Addresses[0].String()+","+g.Addresses[1].String())
				}
			}
			theirs.Addr("eth0", "2001:db8:16::2/64")
			theirs.Route("default", "via", "172.16.0.1")
			theirs.Route("default", "via", "2001:db8:16::1")
			us.Ready()
			leaf := frr.Start(t, b, frr.Daemon{Name: "zebra", Config: c.zebra}, leafConfig(65000, theirsAddr, oursAddr, 65000))
			conf := Config{Peers: []Peer{peering(theirsAddr, 65000)}}
			if c.vrf.Name != "" {
				conf.VRFs = []VRF{c.vrf}
			}
			s := newSiteWith(t, us, oursAddr, conf, gws)
			bridged, routed := s.hosts(n)
			bridged.Route("default", "via", "172.16.0.1")
			routed.Until("routed", func() bool { return pings(routed, "172.16.0.2") })
			theirs.Until("routed from FRR", func() bool { return pings(theirs, "172.18.1.2") })
			bridged.Until("bridged", func() bool { return pings(bridged, "172.16.0.2") && pings(bridged, "172.18.1.2") })
			check.Equal(t, "TTL from FRR's host to ours", routed.PingTTL("172.16.0.2"), c.there)
			check.Equal(t, "TTL from our host to FRR's", theirs.PingTTL("172.18.1.2"), c.back)
			check.Equal(t, "routes to FRR's host", s.routes("172.16.0.2/32"), 0)
			if strings.Contains(leaf.Do("show bgp l2vpn evpn"), "Default Gateway") {
				t.Error("a gateway that FRR has too is advertised")
			}
			if c.vrf.Name == "" {
				routed.Until("routed, IPv6", func() bool { return pings(routed, "2001:db8:16::2") })
				check.Equal(t, "hop limit from FRR's host to ours", routed.PingTTL("2001:db8:16::2"), 63)
				check.Equal(t, "hop limit from our host to FRR's", theirs.PingTTL("2001:db8:18:1::2"), 63)
			}
			s.healthy()
		})
	}
}
