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
	p := newPair(t, n, sw, "192.0.2.%d/24", func(i int) Config { return Config{AS: 65001 + uint32(i), Peers: peers} })
	mobile := p.mobile(n)
	p.reach()
	sessions := func() (up int) {
		for _, s := range p.sites {
			for _, x := range s.speaker.Status().Peers {
				if x.State == "established" && x.Routes > 5 {
					up++
				}
			}
		}
		return up
	}
	sw.Until("all sessions", func() bool { return sessions() == 4 })
	if r := p.sites[0].routes("172.18.2.0/24"); r != 1 || p.sites[0].floods(100) != 1 {
		t.Errorf("%d next hops, %d VTEPs to flood to; want 1 and 1", r, p.sites[0].floods(100))
	}

	h := &host{mac: frame.MAC{2, 0, 0, 0, 9, 9}, ip: netip.MustParseAddr("172.16.0.50")}
	for move := range 5 { // the first is none
		p.move(h, mobile, move%2)
		sw.Until(fmt.Sprintf("sequence %d at both spines", move), func() bool {
			for _, f := range spines {
				out := f.Do("show bgp l2vpn evpn route type 2")
				if _, after, ok := strings.Cut(out, h.mac.String()+"]\n"); !ok || move > 0 && !strings.Contains(after[:min(300, len(after))], fmt.Sprintf("MM:%d", move)) {
					return false
				}
			}
			return true
		})
		for _, s := range p.sites {
			if d := s.speaker.Status().Duplicates; len(d) > 0 {
				t.Fatalf("after %d moves %v has duplicates %v", move, s.addr, d)
			}
		}
	}

	ping := p.bridged[0].Start("ping", "-n", "-q", "-i", "0.01", "-c", "200", "172.16.0.12")
	spines[0].Kill("bgpd")
	sw.Until("two sessions", func() bool { return sessions() == 2 })
	if err := ping.Wait(); err != nil || !strings.Contains(ping.Output(), " 0% packet loss") {
		t.Errorf("%v: %s", err, ping.Output())
	}
	check.Equal(t, "TTL", p.routed[0].PingTTL("172.18.2.2"), 62)
}

// Leaves that share an AS take each other's routes, and leave out their own, which the spine says back.
func TestSharedAS(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw, spine := n.Switch("sw"), n.Host("spine")
	n.Plug(spine, "192.0.2.9/24", sw)
	frr.Start(t, spine, frr.Daemon{Name: "zebra"}, spineConfig("192.0.2.9", 65001, 65001))
	p := newPair(t, n, sw, "192.0.2.%d/24", func(int) Config {
		peer := peering("192.0.2.9", 65100)
		peer.OwnAS = 1
		return Config{AS: 65001, Peers: []Peer{peer}}
	})
	p.reach()
	check.Equal(t, "TTL", p.routed[0].PingTTL("172.18.2.2"), 62)
	for _, s := range p.sites {
		s.healthy("own")
		check.Equal(t, "VTEPs to flood to", s.floods(100), 1)
	}
}
