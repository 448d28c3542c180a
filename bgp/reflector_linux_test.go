package bgp

import (
	"fmt"
	"testing"

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
	c.Pools, c.Peers = c.Pools[:1], peer(64512, "10.0.0.8", "10.0.0.9")
	for i := range c.Peers {
		c.Peers[i].Local = addr("10.0.0.101")
	}
	l.member(rack, []plug{on(101)}, c)

	arp := l.noARP(2, 3, 8, 9)
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
