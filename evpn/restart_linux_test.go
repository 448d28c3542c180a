package evpn

import (
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
	bgpd := reflectorConfig(" bgp graceful-restart", " bgp graceful-restart preserve-fw-state")
	reflector := frr.Start(t, rr, frr.Daemon{Name: "zebra"}, bgpd)
	p := newPair(t, n, sw, "192.0.2.%d/24", clientOf)
	p.reach()
	stale := func() (n int) {
		for _, s := range p.sites {
			if s.speaker.Status().Peers[0].Stale {
				n++
			}
		}
		return n
	}
	ping := []*netns.Proc{
		p.bridged[0].Start("ping", "-n", "-q", "-i", "0.01", "-c", "400", "172.16.0.12"),
		p.routed[0].Start("ping", "-n", "-q", "-i", "0.01", "-c", "400", "172.18.2.2"),
	}
	reflector.Kill("bgpd")
	sw.Until("stale routes", func() bool { return stale() == 2 })
	reflector.Start(t, bgpd)
	sw.Until("routes of the new session", func() bool { return stale() == 0 && p.sites[0].speaker.Status().Peers[0].State == "established" })
	for _, x := range ping {
		if err := x.Wait(); err != nil || !strings.Contains(x.Output(), " 0% packet loss") {
			t.Errorf("%v: %s", err, x.Output())
		}
	}
}
