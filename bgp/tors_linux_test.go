package bgp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A pairOfToRs is two racks, each with two ToRs, on a link of its own, and a node of ours with both. ToRs have sessions with that of the
// other rack in their plane, or with both:
//
//	              +-- 10.0.1.254 ToR 10 --+-- ToR 20 10.0.2.254 --+
//	ours 10.x.1.1 +                     (core)                    + far 10.x.2.1
//	              +-- 10.1.1.254 ToR 11 --+-- ToR 21 10.1.2.254 --+
type pairOfToRs struct {
	*lab
	far *member
}

// newToRs starts all with a pool in a tunnel, or without one.
func newToRs(t *testing.T, m model, pool Pool) *pairOfToRs {
	t.Helper()
	l := &pairOfToRs{lab: newLab(t)}
	plugs, core := [2][]plug{}, l.n.Switch("core")
	for p := range 2 {
		for rack := range 2 {
			sw, i := l.n.Switch(fmt.Sprintf("rack%d%d", rack, p)), 10*(rack+1)+p
			at := func(k int) string { return fmt.Sprintf("10.%d.%d.%d", p, rack+1, k) }
			plugs[rack] = append(plugs[rack], plug{sw, at(101) + "/24"})
			l.host(i, plug{sw, at(254) + "/24"}, plug{core, fmt.Sprintf("10.9.0.%d/24", i)})
			l.bird(i, m.pairConf(rack, p, at(254), at(101), pool.Encapsulation != Never, pool.Encapsulation == Never))
		}
	}
	l.lab.member(l.shape(0, pool), plugs[0], m.dual(0, pool))
	far := l.n.Host("far")
	l.plug(far, plugs[1])
	l.far = newMember(t, l.n, far, l.shape(1, pool), m.dual(1, pool))
	l.pods[2] = l.far.pod
	return l
}

// as is the AS of the ToRs of a rack in a plane: in an AS for each rack, both have it.
func (m model) as(rack, plane int) int {
	if m.session == "multihop;" {
		return torAS(10 * (rack + 1))
	}
	return torAS(10*(rack+1) + plane)
}

// own is the AS of the node of a rack.
func (m model) own(rack int) int {
	if m.session == "multihop;" {
		return m.as(rack, 0)
	}
	return m.node(rack + 1)
}

// pairConf is the configuration of a ToR, which has sessions with the other rack's ToR in its plane, or with both. With tunnels it passes
// on next hops as they are, and its kernel has no routes of pods.
func (m model) pairConf(rack, p int, tor, node string, tunnels, both bool) string {
	conf, nextHop := common(tor), ""
	if tunnels {
		conf = strings.Replace(conf, "if source = RTS_BGP then accept;", "if source = RTS_BGP && net !~ [ 10.65.0.0/16+ ] then accept;", 1)
		conf, nextHop = strings.Replace(conf, `direct { ipv4; interface "eth0"; }`, "direct { ipv4; }", 1), "gateway recursive; next hop keep;"
	}
	pods := strings.Replace(m.export, "source = RTS_BGP", "source = RTS_BGP && net ~ [ 10.65.0.0/16+ ]", 1)
	conf += fmt.Sprintf(`protocol static { ipv4; route 0.0.0.0/0 unreachable; }
protocol bgp node from quick { local %s as %d; neighbor %s as %d; %s ipv4 { import all; %s export %s; }; }
`, tor, m.as(rack, p), node, m.own(rack), m.session+m.tor, nextHop, pods)
	for q := range 2 {
		if q == p || both {
			conf += fmt.Sprintf("protocol bgp tor%d from quick { local 10.9.0.%d as %d; neighbor 10.9.0.%d as %d; ipv4 { import all; %s export where source = RTS_BGP || source = RTS_DEVICE; }; }\n",
				q, 10*(rack+1)+p, m.as(rack, p), 10*(2-rack)+q, m.as(1-rack, q), nextHop)
		}
	}
	return conf
}

func (l *pairOfToRs) shape(rack int, pool Pool) shape {
	s := shape{ID: rack + 1, Tunnel: encap.TypeIPIP}
	if pool.Encapsulation == VXLAN {
		s.Tunnel = encap.TypeVXLAN
	}
	for p := range 2 {
		s.Nets = append(s.Nets, prefix(fmt.Sprintf("10.%d.%d.1/24", p, rack+1)))
		s.Routers = append(s.Routers, addr(fmt.Sprintf("10.%d.%d.254", p, rack+1)))
	}
	return s
}

// dual is the configuration of the node of a rack, with a link to each ToR.
func (m model) dual(rack int, pool Pool) *Config {
	c := memberSettings()
	pool.Prefix = prefix("10.65.0.0/16")
	c.AS, c.RouterID, c.Segment, c.Addresses, c.Listen = uint32(m.own(rack)), addr(fmt.Sprintf("10.0.%d.101", rack+1)), 0, nil, nil
	c.Announce, c.Pools, c.Peers, c.DefaultRoute = prefixes(fmt.Sprintf("10.65.%d.0/26", rack+1)), []Pool{pool}, nil, true
	for p := range 2 {
		at := func(k int) netip.Addr { return addr(fmt.Sprintf("10.%d.%d.%d", p, rack+1, k)) }
		c.Links = append(c.Links, Link{Segment: frame.VNI(200 + p), Addresses: []netip.Addr{at(1)}, IPIP: frame.VNI(100 + p), VXLAN: frame.VNI(4096 + p)})
		c.Peers = append(c.Peers, Peer{Addr: at(254), AS: uint32(m.as(rack, p)), Local: at(101), Hold: time.Hour, BFD: &linkBFD})
		if m.session == "multihop;" {
			c.Peers[p].BFD = &pathBFD
		}
		c.Nodes = append(c.Nodes, Remote{addr(fmt.Sprintf("10.%d.%d.1", p, 2-rack)), frame.MAC{0x66, 0, 0, 0, 0, byte(2 - rack)}})
	}
	return c
}

// Two ToRs on one link, and a tunnel over the host's sockets: the host's address is next hop, and the host has equal routes by both. Both
// ToRs announce the same next hop, which stays while one of them is cut off.
func TestTwoToRsSelf(t *testing.T) {
	l, m := newLab(t), serverAS
	core, members := l.n.Switch("core"), [2]*member{}
	for rack := range 2 {
		sw := l.n.Switch(fmt.Sprint("rack", rack))
		at := func(k int) string { return fmt.Sprintf("10.0.%d.%d", rack+1, k) }
		for p := range 2 {
			i := 10*(rack+1) + p
			l.host(i, plug{sw, at(254-p) + "/24"}, plug{core, fmt.Sprintf("10.9.0.%d/24", i)})
			l.bird(i, m.pairConf(rack, p, at(254-p), at(101), true, true))
		}
		h := l.n.Host(fmt.Sprint("node", rack))
		l.plug(h, []plug{{sw, at(101) + "/24"}})
		h.Sysctl("net.ipv4.fib_multipath_hash_policy", "1")
		h.Sysctl("net.ipv4.fib_multipath_use_neigh", "1")
		h.Sysctl("net.ipv4.neigh.eth0.base_reachable_time_ms", "1000")
		h.Sysctl("net.ipv4.neigh.eth0.delay_first_probe_time", "1")
		h.Route("default", "nexthop", "via", at(254), "nexthop", "via", at(253))
		c := m.dual(rack, Pool{Encapsulation: VXLAN, Segment: 4096})
		c.Links, c.Nodes[0].Address, c.Nodes = nil, addr(fmt.Sprintf("10.0.%d.101", 2-rack)), c.Nodes[:1]
		for p := range c.Peers {
			c.Peers[p].Addr, c.Peers[p].AS, c.Peers[p].Local, c.Peers[p].NextHopSelf = addr(at(254-p)), uint32(m.as(rack, p)), addr(at(101)), true
		}
		members[rack] = newMember(t, l.n, h, shape{ID: rack + 1, Tunnel: encap.TypeVXLAN, Local: addr(at(101))}, c)
	}
	l.ours, l.pods[2] = members[0], members[1].pod
	way := func(p int) string {
		return fmt.Sprintf("10.65.2.0/26 next hop 10.0.2.101 of 10.0.1.%d via vni 4096 mac 66:00:00:00:00:02 vtep 10.0.2.101:0", 254-p)
	}
	both := func() {
		t.Helper()
		l.ours.want("by both ToRs", way(1), way(0))
		l.reaches(members[1], 2, 62)
	}
	both()
	lost := l.ours.lost(func() {
		for p := range 2 {
			l.cut(10+p, "down")
			l.ours.want("by one ToR", way(1-p))
			l.reaches(members[1], 2, 62)
			l.cut(10+p, "up")
			both()
		}
	})
	check.Slice(t, "rows lost", lost, nil)
}

// reaches waits until a member has so many routes, and its pod and ours reach each other.
func (l *lab) reaches(far *member, routes, ttl int) {
	l.t.Helper()
	far.h.Until(fmt.Sprint("routes at the far end: ", routes), func() bool { return far.taken() == routes })
	check.Equal(l.t, "TTL", reach(l.ours.pod, "10.65.2.5"), ttl)
	check.Equal(l.t, "TTL, far", reach(far.pod, pod1), ttl)
}

// spread sends flows from pod 1 to pod 2 until planes have packets of these that a filter matches, and says that no other plane has: the
// first ones by a plane that is back may be lost, while the ToR's MAC is asked for.
func (l *pairOfToRs) spread(filter string, planes ...int) {
	l.t.Helper()
	var cs [2]*netns.Capture
	for i := range cs {
		cs[i] = l.ours.h.Capture(fmt.Sprint("eth", i), filter)
	}
	l.ours.h.Until(fmt.Sprint("flows pass planes ", planes), func() bool {
		sendFlows(l.t, l.ours.pod, "10.65.2.5")
		return !slices.ContainsFunc(planes, func(p int) bool { return len(cs[p].Seen()) < 16 })
	})
	for i, c := range cs {
		n := len(c.Stop())
		check.True(l.t, (n > 0) == slices.Contains(planes, i), "planes %v, and %d packets in plane %d", planes, n, i)
	}
}

// Nodes with two ToRs, each on a link of its own, use both, in tunnels or as they are. A ToR that is cut off is found by BFD at both ends,
// and comes back.
func TestTwoToRs(t *testing.T) {
	for _, x := range []struct {
		name string
		model
		pool   Pool
		filter string
		way    string // by plane %d
		ttl    int
	}{
		{"server ipip", serverAS, Pool{Encapsulation: IPIP, Segment: 100}, "ip proto 4", "10.65.2.0/26 next hop 10.%[1]d.2.1 of 10.%[1]d.1.254 via vni 10%[1]d vtep 10.%[1]d.2.1:0", 62},
		{"server vxlan", serverAS, Pool{Encapsulation: VXLAN, Segment: 4096}, "udp dst port 4789", "10.65.2.0/26 next hop 10.%[1]d.2.1 of 10.%[1]d.1.254 via vni %[3]d mac 66:00:00:00:00:02 vtep 10.%[1]d.2.1:0", 62},
		{"rack ipip", rackAS, Pool{Encapsulation: IPIP, Mode: CrossSubnet, Segment: 100}, "ip proto 4", "10.65.2.0/26 next hop 10.%[1]d.2.1 of 10.%[1]d.1.254 via vni 10%[1]d vtep 10.%[1]d.2.1:0", 62},
		{"rack vxlan", rackAS, Pool{Encapsulation: VXLAN, Segment: 4096}, "udp dst port 4789", "10.65.2.0/26 next hop 10.%[1]d.2.1 of 10.%[1]d.1.254 via vni %[3]d mac 66:00:00:00:00:02 vtep 10.%[1]d.2.1:0", 62},
		{"downward default", downwardDefault, Pool{}, "udp dst port 9", "0.0.0.0/0 next hop 10.%[1]d.1.254 of 10.%[1]d.1.254 via vni %[2]d ip 10.%[1]d.1.254", 60},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := newToRs(t, x.model, x.pool)
			var ways []string
			for p := range 2 {
				ways = append(ways, fmt.Sprintf(x.way, p, 200+p, 4096+p))
			}
			both := func() {
				t.Helper()
				l.ours.want("both planes", ways...)
				l.reaches(l.far, 2, x.ttl)
			}
			both()
			l.spread(x.filter, 0, 1)
			for p := range 2 {
				l.cut(10+p, "down")
				l.ours.want("one plane", ways[1-p])
				l.far.h.Until("one plane, far", func() bool { return l.far.taken() == 1 || x.ttl == 60 })
				check.Equal(t, "TTL", reach(l.ours.pod, "10.65.2.5"), x.ttl)
				l.spread(x.filter, 1-p)
				l.cut(10+p, "up")
				both()
			}
			l.spread(x.filter, 0, 1)
		})
	}
}
