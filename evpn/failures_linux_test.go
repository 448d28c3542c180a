package evpn

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Once the VTEPs know each other's hosts, no ARP crosses.
func TestSuppression(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.bridged.Until("ping", func() bool { return l.us.floods(100) == 1 && pings(l.bridged, "172.16.0.2") })
	l.us.host.Until("each other's hosts", func() bool {
		_, known := l.us.node.Neighbours(100).Table().Lookup(netip.MustParseAddr("172.16.0.2"))
		return known && l.has("[2]:[0]:[48]:[02:00:00:00:01:01]:[32]:[172.16.0.11]") && l.kernel("vx100", "02:00:00:00:01:01", oursAddr)
	})
	c := l.us.host.Capture("eth0", "udp port 4789 and ether[62:2] = 0x0806")
	l.bridged.IP("neigh", "flush", "all")
	l.theirs.IP("neigh", "flush", "all")
	l.bridged.Ping("172.16.0.2", 3)
	l.theirs.Ping("172.16.0.11", 3)
	if got := c.Stop(); len(got) != 0 {
		t.Errorf("ARP crossed:\n%s", netns.Dump(got))
	}
}

func pings(h *netns.Host, to string) bool {
	_, err := h.Try(context.Background(), "ping", "-n", "-c", "1", "-W", "1", to)
	return err == nil
}

// all waits until the hosts of ours and FRR's reach each other, bridged and routed.
func (l *aLab) all(what string) {
	l.us.t.Helper()
	l.bridged.Until(what+": bridged", func() bool { return pings(l.bridged, "172.16.0.2") })
	l.routed.Until(what+": routed", func() bool { return pings(l.routed, "172.16.0.2") })
	l.theirs.Until(what+": from FRR", func() bool { return pings(l.theirs, "172.18.1.2") && pings(l.theirs, "172.16.0.11") })
}

// The session is lost 20 times under traffic, nothing passes for longer than the hold time, and FRR's bgpd is killed and started
// again: each time all comes back.
func TestFailures(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.all("to begin with")
	for i := range 20 {
		l.frr.Do("clear bgp l2vpn evpn *")
		if i%5 == 4 {
			l.all(fmt.Sprintf("after session %d was lost", i+1))
		}
	}
	l.leaf.Run("nft", "table inet t { chain c { type filter hook input priority 0; tcp sport 179 drop; tcp dport 179 drop; }; }")
	l.us.host.Until("the hold time", func() bool { return l.us.floods(100) == 0 && l.us.routes("172.16.0.0/24") == 0 })
	l.leaf.Run("nft", "delete table inet t")
	l.all("after the hold time")
	l.frr.Kill("bgpd")
	l.us.host.Until("FRR's routes to go", func() bool { return l.us.floods(100) == 0 && l.us.routes("172.16.0.0/24") == 0 })
	l.frr.Start(t, l.bgpd)
	l.all("after FRR was killed")
}

// Two of ours with FRR as their route reflector: bridged, and between their segments by the L3VNI. The reflector stops, and starts again.
func TestReflector(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw := n.Switch("sw")
	rr := n.Host("rr")
	n.Plug(rr, "192.0.2.9/24", sw)
	bgpd := reflectorConfig(" neighbor 192.0.2.1 timers 1 3", " neighbor 192.0.2.2 timers 1 3")
	reflector := frr.Start(t, rr, frr.Daemon{Name: "zebra"}, bgpd)
	p := newPair(t, n, sw, "192.0.2.%d/24", clientOf)
	sites, routed := p.sites, p.routed
	p.reach()
	if ttl := routed[1].PingTTL("172.18.1.2"); ttl != 62 {
		t.Errorf("TTL %d", ttl)
	}
	routed[0].Until("a host route", func() bool { return sites[0].routes("172.18.2.2/32") == 1 && sites[0].routes("172.18.2.0/24") == 1 })
	// The switch forgets the host, and its route goes. FRR says so 50 ms later; a host that has spoken meanwhile, as Linux does unasked,
	// is there again and has to be forgotten again.
	routed[0].Until("no host route", func() bool {
		sites[1].forget(200)
		return sites[0].routes("172.18.2.2/32") == 0 && sites[0].routes("172.18.2.0/24") == 1
	})
	reflector.Kill("bgpd")
	routed[0].Until("all routes to go", func() bool { return sites[0].floods(100) == 0 && sites[0].routes("172.18.2.0/24") == 0 })
	reflector.Start(t, bgpd)
	p.reach()
}
