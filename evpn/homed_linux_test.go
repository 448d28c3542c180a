package evpn

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// FRR's Ethernet segment: es-id 5 of system MAC 02:00:00:00:01:11.
const frrESI = "03:02:00:00:00:01:11:00:00:05"

// vteps returns those that FRR has on an Ethernet segment of others or its own.
func vteps(f *frr.FRR, esi string) (list []string) {
	var all []struct {
		ESI   string `json:"esi"`
		VTEPs []struct {
			IP string `json:"vtep_ip"`
		} `json:"vteps"`
	}
	json.Unmarshal([]byte(f.Do("show bgp l2vpn evpn es json")), &all)
	for _, e := range all {
		for _, v := range e.VTEPs {
			if e.ESI == esi {
				list = append(list, v.IP)
			}
		}
	}
	slices.Sort(list)
	return list
}

// ethernet returns what a site knows of an Ethernet segment.
func (s *site) ethernet(esi string) EthernetStatus {
	for _, e := range s.speaker.Status().Ethernets {
		if e.ESI == esi {
			return e
		}
	}
	return EthernetStatus{}
}

// A host has links to two of ours: FRR sees both on the segment, and its kernel sends to both, or to the one that is left. A segment of FRR
// is seen by ours, and on one that all three have, all take part in one election.
func TestHomedFRR(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw, b, theirs := n.Switch("sw"), n.Router("frr"), n.Host("theirs")
	n.Plug(b, "192.0.2.3/24", sw)
	kernelLeaf(n, b, "192.0.2.3", theirs, "100")
	b.IP("addr", "add", "172.16.0.1/24", "dev", "br100")
	var bridge []struct {
		Name   string `json:"ifname"`
		Master string `json:"master"`
	}
	check.OK(t, json.Unmarshal([]byte(b.Run("bridge", "-j", "link")), &bridge))
	port := ""
	for _, l := range bridge {
		if l.Master == "br100" && !strings.HasPrefix(l.Name, "vx") {
			port = l.Name
		}
	}
	zebra := frr.Daemon{Name: "zebra", Config: "interface " + port + "\n evpn mh es-id 5\n evpn mh es-sys-mac 02:00:00:00:01:11\n"}
	f := frr.Start(t, b, zebra, leafConfig(65000, "192.0.2.3", "192.0.2.1", 65000, " exit-address-family", " neighbor 192.0.2.2 remote-as 65000",
		" address-family l2vpn evpn", "  neighbor 192.0.2.2 activate"))
	both := EthernetSegment{ESI: bondESI, Port: "tap3", Wait: time.Second}
	p := newPair(t, n, sw, "192.0.2.%d/24", func(i int) Config {
		return Config{Peers: []Peer{peering("192.0.2.3", 65000), peering(fmt.Sprintf("192.0.2.%d", 2-i), 65000)}, EthernetSegments: []EthernetSegment{both}}
	})
	mac := frame.MAC{2, 0, 0, 0, 0x77, 1}
	var links [2]*netns.Host
	for i, s := range p.sites {
		links[i] = n.Host(fmt.Sprintf("link%d", i+1))
		s.plug(links[i], 100, "172.16.0.50/24", mac)
		links[i].Ready()
	}
	theirs.Ping("172.16.0.1", 1)
	b.Until("FRR to see both on the segment", func() bool { return slices.Equal(vteps(f, bondESI), []string{"192.0.2.1", "192.0.2.2"}) })
	theirs.Until("the host is reached", func() bool { return pings(theirs, "172.16.0.50") })
	b.Until("FRR's kernel to have the host behind a group", func() bool {
		return strings.Contains(b.Run("bridge", "fdb", "show", "dev", "vx100"), mac.String()) && strings.Contains(b.Run("ip", "nexthop"), "192.0.2.2")
	})
	b.Until("one forwards", func() bool {
		x, y := p.sites[0].node.Role("tap3", 100), p.sites[1].node.Role("tap3", 100)
		return x.NoFlood != y.NoFlood && slices.Equal(x.Shared, []netip.Addr{p.sites[1].addr}) && slices.Equal(y.Shared, []netip.Addr{p.sites[0].addr})
	})
	t.Logf("FRR:\n%s\n%s", f.Do("show bgp l2vpn evpn es"), f.Do("show bgp l2vpn evpn route"))
	for _, s := range p.sites {
		t.Logf("%v: %+v", s.addr, s.speaker.Status().Ethernets)
	}

	links[0].IP("link", "del", "tap3") // the port fails
	b.Until("FRR to see the other one only", func() bool { return slices.Equal(vteps(f, bondESI), []string{"192.0.2.2"}) })
	theirs.Until("the host is reached by the other one", func() bool { return pings(theirs, "172.16.0.50") })
	b.Until("the other one to forward", func() bool { return !p.sites[1].node.Role("tap3", 100).NoFlood })
	for _, s := range p.sites {
		for reason, n := range s.healthy("own").LeftOut {
			t.Logf("%v: %d left out: %s", s.addr, n, reason)
		}
	}
}
