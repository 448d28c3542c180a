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
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// vteps returns those that FRR has on an Ethernet segment, and may send to.
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

// A host has links to two of ours: FRR sees both on the segment, and its kernel sends to both, or to the one that is left. One of the two
// forwards. (FRR has Ethernet segments of its own on bonds only, which not every kernel has.)
func TestHomedFRR(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw, b, theirs := n.Switch("sw"), n.Router("frr"), n.Host("theirs")
	n.Plug(b, "192.0.2.3/24", sw)
	kernelLeaf(n, b, "192.0.2.3", theirs, "100")
	b.IP("addr", "add", "172.16.0.1/24", "dev", "br100")
	f := frr.Start(t, b, frr.Daemon{Name: "zebra"}, leafConfig(65000, "192.0.2.3", "192.0.2.1", 65000, " exit-address-family", " neighbor 192.0.2.2 remote-as 65000",
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
	b.Until("FRR to have all routes", func() bool {
		return f.HasEVPN("[4]:["+bondESI+"]:[32]:[192.0.2.1]") && f.HasEVPN("[4]:["+bondESI+"]:[32]:[192.0.2.2]")
	})
	for i, s := range p.sites {
		e := s.speaker.Status().Ethernets
		if len(e) != 1 || e[0].ESI != bondESI || e[0].State != "up" || !slices.Equal(e[0].VTEPs, []netip.Addr{p.sites[1-i].addr}) || len(e[0].Candidates) != 2 {
			t.Errorf("%v: %+v", s.addr, e)
		}
	}

	links[0].IP("link", "del", "tap3") // the port fails
	b.Until("FRR to see the other one only", func() bool { return slices.Equal(vteps(f, bondESI), []string{"192.0.2.2"}) })
	theirs.Until("the host is reached by the other one", func() bool { return pings(theirs, "172.16.0.50") })
	b.Until("the other one to forward", func() bool { return !p.sites[1].node.Role("tap3", 100).NoFlood })
	for _, s := range p.sites {
		s.healthy()
	}
}
