package bgp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// reflectorConf is route reflector i, whose clients are ours, nodes 2 and 3.
func reflectorConf(i int) string {
	conf := common(fmt.Sprintf("10.0.0.%d", i)) + fmt.Sprintf(`template bgp served from quick { local 10.0.0.%d as 64512; multihop; rr client; rr cluster id 244.0.0.1;
  ipv4 { import all; gateway recursive; add paths on; export where source = RTS_BGP; }; }
`, i)
	for _, k := range []int{101, 2, 3} {
		conf += fmt.Sprintf("protocol bgp c%d from served { neighbor 10.0.0.%[1]d as 64512; }\n", k)
	}
	return conf
}

// clientConf is node i, whose only sessions are those with reflectors 8 and 9.
func clientConf(i int) string {
	return common(fmt.Sprintf("10.0.0.%d", i)) + blockOf(i) + fmt.Sprintf(`template bgp up from quick { local 10.0.0.%d as 64512; multihop;
  ipv4 { import all; gateway recursive; add paths on; export filter blocks; }; }
protocol bgp rr8 from up { neighbor 10.0.0.8 as 64512; }
protocol bgp rr9 from up { neighbor 10.0.0.9 as 64512; }
`, i)
}

// Nodes without a mesh have each other's blocks from two route reflectors. One of these is cut off, and then the other: BFD finds it,
// and no node loses a route.
func TestReflectorPair(t *testing.T) {
	l := newLab(t)
	sw := l.n.Switch("sw")
	on := func(i int) plug { return plug{sw, fmt.Sprintf("10.0.0.%d/24", i)} }
	for i := 2; i <= 3; i++ {
		l.node(i, on(i))
		l.bird(i, clientConf(i))
	}
	for i := 8; i <= 9; i++ {
		l.host(i, on(i))
		l.bird(i, reflectorConf(i))
	}
	c := memberSettings()
	c.Pools, c.Peers = c.Pools[:1], peers(64512, "10.0.0.101", "10.0.0.8", "10.0.0.9")
	l.member(rack, []plug{on(101)}, c)

	arp, own := l.noARP(2, 3, 8, 9), l.hosts[2].Capture("eth1", podARP)
	by := func(rr ...int) (ways []string) {
		for i := 2; i <= 3; i++ {
			for _, k := range rr {
				ways = append(ways, fmt.Sprintf("10.65.%d.0/26 next hop 10.0.0.%[1]d of 10.0.0.%[2]d via vni 200 ip 10.0.0.%[1]d", i, k))
			}
		}
		return ways
	}
	l.ours.want("routes by both", by(8, 9)...)
	for i := 2; i <= 3; i++ {
		l.up(i, true, "rr8", "rr9")
	}
	l.pings(62, 2, 3)
	check.True(t, len(own.Stop()) > 0, "no ARP of the pod on its own link was seen")
	l.hops(l.ours.pod, pod2, "10.65.1.1", "10.0.0.2", pod2)
	l.hops(l.pods[3], pod1, "10.65.3.1", "10.0.0.1", pod1)

	for _, rr := range []int{8, 9} {
		other := 17 - rr
		before := l.deleted(2) + l.deleted(3)
		lost := l.ours.lost(func() {
			l.cut(rr, "down")
			l.ours.want("routes by one", by(other)...)
			for i := 2; i <= 3; i++ {
				l.up(i, false, fmt.Sprint("rr", rr))
				l.up(i, true, fmt.Sprint("rr", other))
			}
			l.pings(62, 2, 3)
			l.cut(rr, "up")
			l.ours.want("routes by both again", by(8, 9)...)
			for i := 2; i <= 3; i++ {
				l.up(i, true, fmt.Sprint("rr", rr))
			}
		})
		check.Slice(t, "rows lost", lost, nil)
		check.Equal(t, "routes that kernels lost", l.deleted(2)+l.deleted(3), before)
	}

	// Node 2 takes its block back: both reflectors say so.
	l.birds[2].Do("disable", "own")
	l.ours.want("without the block of 2", by(8, 9)[2:]...)
	l.birds[2].Do("enable", "own")
	l.ours.want("with it", by(8, 9)...)
	l.pings(62, 2)
	arp()
}

// Two nodes have the same block, and a route reflector that announces all paths (RFC 7911) both: each flow uses one.
func TestAddPath(t *testing.T) {
	l := newLab(t)
	sw := l.n.Switch("sw")
	on := func(i int) plug { return plug{sw, fmt.Sprintf("10.0.0.%d/24", i)} }
	for i := 2; i <= 3; i++ {
		l.node(i, on(i))
		l.bird(i, strings.Replace(clientConf(i), "blackhole;", "blackhole; route 10.65.50.0/26 blackhole;", 1))
		l.hosts[i].Addr("lo", "10.65.50.6/32")
	}
	l.host(8, on(8))
	l.bird(8, reflectorConf(8))
	c := memberSettings()
	c.Pools, c.Peers = c.Pools[:1], peers(64512, "10.0.0.101", "10.0.0.8")
	l.member(rack, []plug{on(101)}, c)
	way := func(p string, i int) string {
		return fmt.Sprintf("10.65.%s.0/26 next hop 10.0.0.%d of 10.0.0.8 via vni 200 ip 10.0.0.%[2]d", p, i)
	}
	l.ours.want("both next hops", way("2", 2), way("3", 3), way("50", 2), way("50", 3))
	check.Equal(t, "TTL", reach(l.ours.pod, "10.65.50.6"), 63)
	for i := 2; i <= 3; i++ {
		other := 5 - i
		l.birds[i].Do("disable", "own")
		l.ours.want("one next hop", way(fmt.Sprint(other), other), way("50", other))
		check.Equal(t, "TTL", reach(l.ours.pod, "10.65.50.6"), 63)
		l.birds[i].Do("enable", "own")
		l.ours.want("both again", way("2", 2), way("3", 3), way("50", 2), way("50", 3))
	}
}

// Ours is the route reflector of nodes that connect to it from a prefix. One of them is cut off, and another is disabled.
func TestReflectorOurs(t *testing.T) {
	l := newLab(t)
	sw := l.n.Switch("sw")
	on := func(i int) plug { return plug{sw, fmt.Sprintf("10.0.0.%d/24", i)} }
	conf := func(i int) string {
		return common(fmt.Sprintf("10.0.0.%d", i)) + blockOf(i) + fmt.Sprintf(`protocol bgp ours from quick { local 10.0.0.%d as 64512; neighbor 10.0.0.101 as 64512; multihop; hold time 9;
  ipv4 { import all; gateway recursive; export filter blocks; }; }
`, i)
	}
	for i := 2; i <= 4; i++ {
		l.node(i, on(i))
		l.bird(i, conf(i))
	}
	c := memberSettings()
	c.Pools, c.Peers = c.Pools[:1], []Peer{{Prefix: prefix("10.0.0.0/24"), AS: 64512, Client: true, Hold: 9 * time.Second}}
	l.member(rack, []plug{on(101)}, c)
	way := func(i int) string {
		return fmt.Sprintf("10.65.%d.0/26 next hop 10.0.0.%[1]d of 10.0.0.%[1]d via vni 200 ip 10.0.0.%[1]d", i)
	}
	has := func(i, other int, is bool) {
		t.Helper()
		l.hosts[i].Until(fmt.Sprintf("node %d has a route to %d: %v", i, other, is), func() bool {
			return strings.Contains(l.hosts[i].IP("route", "show", fmt.Sprintf("10.65.%d.0/26", other)), fmt.Sprintf("via 10.0.0.%d dev eth0", other)) == is
		})
	}
	l.ours.want("routes", way(2), way(3), way(4))
	has(2, 3, true)
	has(3, 2, true)
	l.pings(62, 2, 3)
	check.Equal(t, "TTL between nodes", reach(l.pods[2], pod3), 62)
	l.hops(l.pods[2], pod3, "10.65.2.1", "10.0.0.3", pod3)
	l.birds[2].Do("disable", "own")
	has(3, 2, false)
	l.birds[2].Do("enable", "own")
	has(3, 2, true)
	l.cut(2, "down")
	l.ours.want("a node is silent", way(3), way(4))
	has(3, 2, false)
	l.cut(2, "up")
	l.ours.want("and back", way(2), way(3), way(4))
	has(3, 2, true)
	has(2, 1, true)
	l.pings(62, 2, 3)
}
