package evpn

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/gobgp"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// frrRestarts runs FRR as the reflector, with graceful restart, and returns what kills it and what starts it again; gobgpdRestarts likewise.
func frrRestarts(t *testing.T, rr *netns.Host) (kill, again func()) {
	bgpd := reflectorConfig(" bgp graceful-restart", " bgp graceful-restart preserve-fw-state")
	f := frr.Start(t, rr, frr.Daemon{Name: "zebra"}, bgpd)
	return func() { f.Kill("bgpd") }, func() { f.Start(t, bgpd) }
}

func gobgpdRestarts(t *testing.T, rr *netns.Host) (kill, again func()) {
	g := gobgp.Reflector{AS: 65000, ID: "192.0.2.9", Clients: []string{"192.0.2.1", "192.0.2.2"}, Restart: 120}
	p := g.Start(t, rr)
	return func() { p.Kill() }, func() { g.Start(t, rr, "-r") }
}

// The reflector restarts gracefully: it is killed, and packets pass all the while.
func TestGracefulReflector(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T, *netns.Host) (kill, again func()){"FRR": frrRestarts, "gobgpd": gobgpdRestarts} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := netns.New(t)
			sw, rr := n.Switch("sw"), n.Host("rr")
			n.Plug(rr, "192.0.2.9/24", sw)
			kill, again := begin(t, rr)
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
			kill()
			sw.Until("stale routes", func() bool { return stale() == 2 })
			again()
			sw.Until("routes of the new session", func() bool { return stale() == 0 && p.sites[0].speaker.Status().Peers[0].State == "established" })
			for _, x := range ping {
				if err := x.Wait(); err != nil || !strings.Contains(x.Output(), " 0% packet loss") {
					t.Errorf("%v: %s", err, x.Output())
				}
			}
			p.reach()
		})
	}
}
