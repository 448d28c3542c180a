package bgp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// restartConf is node 2 with a second block, or without, and so many seconds for a restart.
func restartConf(second string, restart int) string {
	conf := strings.Replace(common("10.0.0.2"), "merge paths on;", "merge paths on; graceful restart;", 1)
	return conf + strings.Replace(blockOf(2), "blackhole;", "blackhole; "+second, 1) + fmt.Sprintf(`protocol bgp ours from quick { local 10.0.0.2 as 64512; neighbor 10.0.0.101 as 64512; multihop;
  graceful restart on; graceful restart time %d; ipv4 { import all; gateway recursive; add paths on; export filter blocks; }; }
`, restart)
}

// A BIRD that is killed and restarts gracefully keeps its routes, and the session begins anew. What it no longer has then is gone, and all
// is gone if it does not come back in time.
func TestGracefulRestart(t *testing.T) {
	const second = "route 10.65.22.0/26 blackhole;"
	l := newLab(t)
	sw := l.n.Switch("sw")
	l.node(2, plug{sw, "10.0.0.2/24"})
	l.bird(2, restartConf(second, 120))
	c := memberSettings()
	c.Pools, c.Peers = c.Pools[:1], []Peer{{Addr: addr("10.0.0.2"), AS: 64512, Local: addr("10.0.0.101"), Hold: time.Hour, GracefulRestart: true}}
	l.member(rack, []plug{{sw, "10.0.0.101/24"}}, c)
	way22 := strings.ReplaceAll(way2, "10.65.2.0", "10.65.22.0")
	l.ours.want("routes", way2, way22)
	l.pings(62, 2)

	// restart kills BIRD, says what there is meanwhile, and starts it again.
	restart := func(conf string) {
		t.Helper()
		b := l.birds[2]
		b.Kill()
		l.ours.h.Until("the session is lost", func() bool { return l.ours.peer("10.0.0.2").State != "established" })
		l.pings(62, 2)
		l.ours.want("routes of a BIRD that restarts", way2, way22)
		b.Again(conf, "-R")
		l.ours.h.Until("the session is back", func() bool { return l.ours.peer("10.0.0.2").State == "established" })
		l.up(2, true, "ours")
	}
	before := l.deleted(2)
	check.Slice(t, "rows lost", l.ours.lost(func() {
		restart(restartConf(second, 120))
		l.hosts[2].Until("BIRD has recovered", func() bool { return !strings.Contains(l.birds[2].Try("show", "status"), "Graceful restart recovery") })
		l.pings(62, 2)
	}), nil)
	check.Equal(t, "routes that the kernel of BIRD lost", l.deleted(2), before)
	check.Slice(t, "rows lost", l.ours.lost(func() {
		restart(restartConf("", 120))
		l.ours.want("without what it no longer has", way2)
		l.pings(62, 2)
	}), []string{"prefix 10.65.22.0/26 vrf v via vni 200 ip 10.0.0.2 distance 20"})

	l.birds[2].Configure(restartConf("", 3))
	l.ours.want("with another time", way2)
	l.up(2, true, "ours")
	l.birds[2].Kill()
	l.ours.want("it did not come back")
}

// With BFD a peer that stays away is dead at once, though it might restart; when it comes back, so do its routes.
func TestGracefulRestartBFD(t *testing.T) {
	l := newLab(t)
	sw := l.n.Switch("sw")
	l.node(2, plug{sw, "10.0.0.2/24"})
	l.bird(2, restartConf("", 120))
	c := memberSettings()
	c.Pools, c.Peers = c.Pools[:1], peers(64512, "10.0.0.101", "10.0.0.2")
	c.Peers[0].GracefulRestart = true
	l.member(rack, []plug{{sw, "10.0.0.101/24"}}, c)
	path := func() string { return l.ours.peer("10.0.0.2").BFD }
	l.ours.want("routes", way2)
	l.ours.h.Until("the path is alive", func() bool { return path() == "alive" })
	cs := map[string]*netns.Capture{"ours": l.hosts[2].Capture("eth0", "udp dst port 4784 and src 10.0.0.101"), "BIRD's": l.hosts[2].Capture("eth0", "udp dst port 4784 and src 10.0.0.2")}
	for whose, c := range cs { // both end with BGP
		l.ours.h.Until("packets of BFD, "+whose, func() bool { return len(c.Seen()) > 0 })
		p := c.Stop()[0]
		x, why := bfd.Parse(p.Data[len(p.Data)-24:])
		check.True(t, why == bfd.NotDiscarded && !x.Independent, "%s: %+v %v", whose, x, why)
	}
	l.birds[2].Kill()
	l.ours.want("the routes of the dead one are gone")
	l.ours.h.Until("it is said why", func() bool { return l.ours.peer("10.0.0.2").Why == "the path is dead" })
	l.birds[2].Again(restartConf("", 120), "-R")
	l.ours.want("and back", way2)
	l.pings(62, 2)
	l.ours.h.Until("the path is alive again", func() bool { return path() == "alive" })
	l.cut(2, "down")
	l.ours.want("gone with the link")
	l.cut(2, "up")
	l.ours.want("and back again", way2)
	l.pings(62, 2)
}
