package evpn

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
)

// spineConfig makes bgpd that of a spine of AS 65100, which leaves next hops as they are. The leaves are 192.0.2.1 and up.
func spineConfig(id string, ases ...uint32) frr.Daemon {
	conf := "router bgp 65100\n bgp router-id " + id + "\n no bgp default ipv4-unicast\n no bgp ebgp-requires-policy\n"
	family := " address-family l2vpn evpn\n"
	for i, as := range ases {
		conf += fmt.Sprintf(" neighbor 192.0.2.%d remote-as %d\n", i+1, as)
		family += fmt.Sprintf("  neighbor 192.0.2.%d activate\n  neighbor 192.0.2.%[1]d attribute-unchanged next-hop\n", i+1)
	}
	return frr.Daemon{Name: "bgpd", Config: conf + family}
}

// Two leaves hear every route from two spines. A host that moves has moved once for both, and one spine is enough.
func TestTwoSpines(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw := n.Switch("sw")
	var spines [2]*frr.FRR
	var peers []Peer
	for i := range spines {
		h, addr := n.Host(fmt.Sprintf("spine%d", i+1)), fmt.Sprintf("192.0.2.%d", i+101)
		n.Plug(h, addr+"/24", sw)
		spines[i] = frr.Start(t, h, frr.Daemon{Name: "zebra"}, spineConfig(addr, 65001, 65002))
		peers = append(peers, peering(addr, 65100))
	}
	var sites [2]*site
	var bridged, routed, mobile [2]*netns.Host
	for i := range sites {
		us, addr := n.Host(fmt.Sprintf("us%d", i+1)), fmt.Sprintf("192.0.2.%d", i+1)
		n.Plug(us, addr+"/24", sw)
		us.Ready()
		sites[i] = newSite(t, us, addr, Config{AS: 65001 + uint32(i), Peers: peers})
		bridged[i], routed[i] = sites[i].hosts(n)
		mobile[i] = n.Host(fmt.Sprintf("mobile%d", i+1))
		tap := netns.Open(t, mobile[i], func() (*port.Device, error) { return port.OpenTAP("mobile", nil) })
		check.OK(t, check.Must(sites[i].node.Segment(100, nil))(t).Add(tap, nil))
		mobile[i].Up("mobile")
	}
	bridged[0].Until("bridged", func() bool { return pings(bridged[0], "172.16.0.12") })
	routed[0].Until("routed", func() bool { return pings(routed[0], "172.18.2.2") })
	sessions := func() (up int) {
		for _, s := range sites {
			for _, p := range s.speaker.Status().Peers {
				if p.State == "established" && p.Routes > 5 {
					up++
				}
			}
		}
		return up
	}
	sw.Until("all sessions", func() bool { return sessions() == 4 })
	if r := sites[0].routes("172.18.2.0/24"); r != 1 || sites[0].floods(100) != 1 {
		t.Errorf("%d next hops, %d VTEPs to flood to; want 1 and 1", r, sites[0].floods(100))
	}

	h := &host{mac: frame.MAC{2, 0, 0, 0, 9, 9}, ip: netip.MustParseAddr("172.16.0.50")}
	for move := range 5 { // the first is none
		at, from := move%2, 1-move%2
		mobile[at].Inject("mobile", announcement(h))
		sw.Until("the host where it is", func() bool {
			return sites[at].at(h.mac) == "here" && sites[from].at(h.mac) == sites[at].addr.String()+":4789"
		})
		sw.Until(fmt.Sprintf("sequence %d at both spines", move), func() bool {
			for _, f := range spines {
				out := f.Do("show bgp l2vpn evpn route type 2")
				if _, after, ok := strings.Cut(out, h.mac.String()+"]\n"); !ok || move > 0 && !strings.Contains(after[:min(300, len(after))], fmt.Sprintf("MM:%d", move)) {
					return false
				}
			}
			return true
		})
		for _, s := range sites {
			if d := s.speaker.Status().Duplicates; len(d) > 0 {
				t.Fatalf("after %d moves %v has duplicates %v", move, s.addr, d)
			}
		}
	}

	ping := bridged[0].Start("ping", "-n", "-q", "-i", "0.01", "-c", "200", "172.16.0.12")
	spines[0].Kill("bgpd")
	sw.Until("two sessions", func() bool { return sessions() == 2 })
	if err := ping.Wait(); err != nil || !strings.Contains(ping.Output(), " 0% packet loss") {
		t.Errorf("%v: %s", err, ping.Output())
	}
	check.Equal(t, "TTL", routed[0].PingTTL("172.18.2.2"), 62)
}
