package evpn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The reflector restarts gracefully: it is killed, and packets pass all the while.
func TestGracefulReflector(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw, rr := n.Switch("sw"), n.Host("rr")
	n.Plug(rr, "192.0.2.9/24", sw)
	bgpd := frr.Daemon{Name: "bgpd", Config: `router bgp 65000
 bgp router-id 192.0.2.9
 no bgp default ipv4-unicast
 bgp graceful-restart
 bgp graceful-restart preserve-fw-state
 neighbor 192.0.2.1 remote-as 65000
 neighbor 192.0.2.2 remote-as 65000
 address-family l2vpn evpn
  neighbor 192.0.2.1 activate
  neighbor 192.0.2.1 route-reflector-client
  neighbor 192.0.2.2 activate
  neighbor 192.0.2.2 route-reflector-client
`}
	reflector := frr.Start(t, rr, frr.Daemon{Name: "zebra"}, bgpd)
	var sites [2]*site
	var bridged, routed [2]*netns.Host
	for i := range sites {
		us, addr := n.Host(fmt.Sprintf("us%d", i+1)), fmt.Sprintf("192.0.2.%d", i+1)
		n.Plug(us, addr+"/24", sw)
		us.Ready()
		sites[i] = newSite(t, us, addr, Config{Peers: []Peer{peering("192.0.2.9", 65000)}})
		bridged[i], routed[i] = sites[i].hosts(n)
	}
	bridged[0].Until("bridged", func() bool { return pings(bridged[0], "172.16.0.12") })
	routed[0].Until("routed", func() bool { return pings(routed[0], "172.18.2.2") })
	stale := func() (n int) {
		for _, s := range sites {
			if s.speaker.Status().Peers[0].Stale {
				n++
			}
		}
		return n
	}
	ping := []*netns.Proc{
		bridged[0].Start("ping", "-n", "-q", "-i", "0.01", "-c", "400", "172.16.0.12"),
		routed[0].Start("ping", "-n", "-q", "-i", "0.01", "-c", "400", "172.18.2.2"),
	}
	reflector.Kill("bgpd")
	sw.Until("stale routes", func() bool { return stale() == 2 })
	reflector.Start(t, bgpd)
	sw.Until("routes of the new session", func() bool { return stale() == 0 && sites[0].speaker.Status().Peers[0].State == "established" })
	for _, p := range ping {
		if err := p.Wait(); err != nil || !strings.Contains(p.Output(), " 0% packet loss") {
			t.Errorf("%v: %s", err, p.Output())
		}
	}
}
