package bgp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// sendFlows sends a packet of each of 128 flows.
func sendFlows(t *testing.T, from *netns.Host, to string) {
	t.Helper()
	from.Do(func() {
		for range 128 {
			c := check.Must(net.Dial("udp", to+":9"))(t)
			check.Must(c.Write([]byte("flow")))(t)
			c.Close()
		}
	})
}

// flows sends a packet of each of 128 flows, and returns how many pass each plane at node 2.
func (l *lab) flows(from *netns.Host, to string, planes ...int) (n [4]int) {
	l.t.Helper()
	var cs [4]*netns.Capture
	for i := range cs {
		cs[i] = l.hosts[2].Capture(fmt.Sprint("eth", i), "udp dst port 9")
	}
	sendFlows(l.t, from, to)
	sum := func() (sum int) {
		for i, c := range cs {
			n[i] = len(c.Seen())
			sum += n[i]
		}
		return sum
	}
	from.Until("all flows pass", func() bool { return sum() >= 128 })
	for i, c := range cs {
		n[i] = len(c.Stop())
		check.True(l.t, (n[i] > 0) == slices.Contains(planes, i), "to %s by planes %v: %v", to, planes, n)
	}
	return n
}

// A node in a fabric of Ethernet with four planes has a link, a session and a next hop in each, and uses all of them. A plane that is cut
// is found by BFD: its next hop is gone, and no other.
func TestFourPlanes(t *testing.T) {
	l := newLab(t)
	var sw [4]*netns.Host
	var two, plugs []plug
	conf := common("10.0.0.2") + blockOf(2)
	s, ways := shape{Tunnel: rack.Tunnel}, []string{}
	c := memberSettings()
	c.RouterID, c.Segment, c.Addresses, c.Listen, c.Pools, c.Peers = addr("10.0.0.101"), 0, nil, nil, c.Pools[:1], nil
	for p := range sw {
		at := func(i int) string { return fmt.Sprintf("10.0.%d.%d", p, i) }
		sw[p] = l.n.Switch(fmt.Sprint("plane", p))
		two, plugs = append(two, plug{sw[p], at(2) + "/24"}), append(plugs, plug{sw[p], at(101) + "/24"})
		conf += fmt.Sprintf("protocol bgp p%d from quick { local %s as 64512; neighbor %s as 64512; direct; ipv4 { import all; next hop self; export filter blocks; }; }\n", p, at(2), at(101))
		c.Links = append(c.Links, Link{Segment: frame.VNI(200 + p), Addresses: []netip.Addr{addr(at(1))}})
		peer := peers(64512, at(101), at(2))[0]
		peer.BFD = &linkBFD
		c.Peers = append(c.Peers, peer)
		s.Nets = append(s.Nets, prefix(at(1)+"/24"))
		ways = append(ways, fmt.Sprintf("10.65.2.0/26 next hop %s of %[1]s via vni %d ip %[1]s", at(2), 200+p))
	}
	l.node(2, two...)
	l.hosts[2].Sysctl("net.ipv4.fib_multipath_hash_policy", "1")
	l.bird(2, conf)
	l.member(s, plugs, c)
	arp := l.noARP(2)
	nextHops := func(list ...int) {
		t.Helper()
		l.hosts[2].Until(fmt.Sprint("next hops of the kernel in planes: ", list), func() bool {
			out := l.hosts[2].IP("route", "show", block)
			for p := range sw {
				if strings.Contains(out, fmt.Sprintf(" via 10.0.%d.1 ", p)) != slices.Contains(list, p) {
					return false
				}
			}
			return true
		})
	}
	l.ours.want("four next hops", ways...)
	nextHops(0, 1, 2, 3)
	l.pings(62, 2)
	l.flows(l.ours.pod, pod2, 0, 1, 2, 3)
	l.flows(l.pods[2], pod1, 0, 1, 2, 3)

	lost := l.ours.lost(func() {
		cut, detect := time.Now(), linkBFD.Interval*time.Duration(linkBFD.Multiplier)
		sw[1].IP("link", "set", "br0", "down")
		l.ours.want("three next hops", ways[0], ways[2], ways[3])
		if took := time.Since(cut); took > 3*detect {
			t.Errorf("the plane was found dead after %v, want %v at most", took, 3*detect)
		}
		nextHops(0, 2, 3)
		l.pings(62, 2)
		l.flows(l.ours.pod, pod2, 0, 2, 3)
		l.flows(l.pods[2], pod1, 0, 2, 3)
		sw[1].IP("link", "set", "br0", "up")
		l.ours.want("four again", ways...)
		nextHops(0, 1, 2, 3)
	})
	check.Equal(t, "rows lost", len(lost), 1)
	l.flows(l.ours.pod, pod2, 0, 1, 2, 3)

	l.birds[2].Do("disable", "own")
	l.ours.want("the block is withdrawn in all planes")
	l.birds[2].Do("enable", "own")
	l.ours.want("and is back", ways...)
	l.pings(62, 2)

	// A link more and one less, with the sessions of the others.
	fewer := *c
	fewer.Links, fewer.Peers = c.Links[:3], c.Peers[:3]
	l.ours.set(&fewer)
	l.ours.want("three links", ways[:3]...)
	nextHops(0, 1, 2)
	l.ours.set(c)
	l.ours.want("four links", ways...)
	nextHops(0, 1, 2, 3)
	c.Announce = nil
	l.ours.set(c)
	nextHops()
	arp()
}
