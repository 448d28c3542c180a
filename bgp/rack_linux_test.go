package bgp

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// racks are two with switches that route, ToRs, and a network between these:
//
//	ours 10.0.1.1, node 2 10.0.1.2 -- ToR 11 10.0.1.254 --+-- ToR 21 10.0.2.254 -- node 3 10.0.2.3
//	                          maybe +- ToR 12 10.0.1.253 --+
type racks struct {
	*lab
	own plug
}

// A model says who has which AS.
type model struct {
	node    func(i int) int // AS of a node: 1 is ours
	session string          // what sessions of nodes and ToRs have besides,
	tor     string          // and the ToR's end,
	channel string          // and its channel
	export  string          // what a ToR tells nodes
}

func torAS(i int) int { return 64600 + i }

// An AS for each rack, whose ToR is the route reflector; one for each server, and one of all servers, which hear of a default route only.
var (
	rackAS = model{
		node: func(i int) int { return torAS(map[int]int{1: 11, 2: 11, 3: 21}[i]) }, session: "multihop;", tor: "rr client;",
		channel: "gateway recursive; next hop self ebgp;", export: "where source = RTS_BGP",
	}
	serverAS        = model{node: func(i int) int { return 64700 + i }, session: "direct;", export: "where source = RTS_BGP"}
	downwardDefault = model{node: func(int) int { return 64512 }, session: "direct;", export: "where net = 0.0.0.0/0"}
)

// newRacks makes the racks with ToRs of the first: 11, maybe 12.
func newRacks(t *testing.T, m model, more string, tors ...int) *racks {
	t.Helper()
	l := &racks{lab: newLab(t)}
	core, one, two := l.n.Switch("core"), l.n.Switch("rack1"), l.n.Switch("rack2")
	var up []string
	for _, i := range tors {
		addr := fmt.Sprintf("10.0.1.%d", 265-i)
		up = append(up, addr)
		l.host(i, plug{one, addr + "/24"}, plug{core, fmt.Sprintf("10.1.0.%d/24", i)})
		l.bird(i, m.torConf(i, addr, more, []string{fmt.Sprint("10.0.1.101 as ", m.node(1)), fmt.Sprint("10.0.1.2 as ", m.node(2))}, 21))
	}
	l.host(21, plug{two, "10.0.2.254/24"}, plug{core, "10.1.0.21/24"})
	l.bird(21, m.torConf(21, "10.0.2.254", "", []string{fmt.Sprint("10.0.2.3 as ", m.node(3))}, tors...))
	l.node(2, plug{one, "10.0.1.2/24"})
	l.bird(2, m.nodeConf(2, "10.0.1.2", tors[0], up...))
	l.node(3, plug{two, "10.0.2.3/24"})
	l.bird(3, m.nodeConf(3, "10.0.2.3", 21, "10.0.2.254"))
	l.own = plug{one, "10.0.1.101/24"}
	return l
}

// torConf is the configuration of a ToR; more is for the session with ours.
func (m model) torConf(i int, addr, more string, nodes []string, others ...int) string {
	conf := common(addr) + fmt.Sprintf("protocol static { ipv4; route 0.0.0.0/0 unreachable; }\ntemplate bgp node from quick { local %s as %d; %s ipv4 { import all; %s export %s; }; }\n",
		addr, torAS(i), m.session+m.tor, m.channel, m.export)
	for k, n := range nodes {
		conf += fmt.Sprintf("protocol bgp n%d from node { neighbor %s; %s }\n", k, n, more)
		more = ""
	}
	for _, k := range others {
		conf += fmt.Sprintf("protocol bgp t%d from quick { local 10.1.0.%d as %d; neighbor 10.1.0.%[1]d as %[4]d; ipv4 { import all; export where source = RTS_BGP; }; }\n", k, i, torAS(i), torAS(k))
	}
	return conf
}

// nodeConf is the configuration of a node with sessions with ToRs: t0 and so on.
func (m model) nodeConf(i int, addr string, tor int, up ...string) string {
	conf := common(addr) + blockOf(i)
	for k, a := range up {
		recursive := ""
		if m.session == "multihop;" {
			recursive = "gateway recursive;"
		}
		conf += fmt.Sprintf("protocol bgp t%d from quick { local %s as %d; neighbor %s as %d; %s ipv4 { import all; %s export filter blocks; }; }\n",
			k, addr, m.node(i), a, torAS(tor+k), m.session, recursive)
	}
	return conf
}

// start starts ours.
func (l *racks) start(m model, list []Peer, edit func(*Config)) {
	l.t.Helper()
	c := memberSettings()
	c.AS, c.RouterID, c.Addresses, c.Listen = uint32(m.node(1)), addr("10.0.1.101"), []netip.Addr{addr("10.0.1.1")}, nil
	c.Pools, c.Peers = c.Pools[:1], list
	for i := range c.Peers {
		if m.session == "direct;" {
			c.Peers[i].BFD = &linkBFD
		}
	}
	if edit != nil {
		edit(c)
	}
	l.member(shape{Nets: prefixes("10.0.1.1/24"), Tunnel: rack.Tunnel}, []plug{l.own}, c)
}

// An AS for each rack: its nodes have each other's blocks from their ToR, their route reflector, and those of other racks by way of it. A
// ToR that is cut off is found by BFD, and its routes are gone.
func TestRackAS(t *testing.T) {
	l := newRacks(t, rackAS, "", 11)
	l.start(rackAS, peers(64611, "10.0.1.101", "10.0.1.254"), nil)
	arp := l.noARP(2, 3, 11, 21)
	ways := []string{"10.65.2.0/26 next hop 10.0.1.2 of 10.0.1.254 via vni 200 ip 10.0.1.2", "10.65.3.0/26 next hop 10.0.1.254 of 10.0.1.254 via vni 200 ip 10.0.1.254"}
	l.ours.want("routes", ways...)
	l.pings(62, 2)
	l.pings(60, 3) // two routers more
	l.hops(l.ours.pod, pod2, "10.65.1.1", "10.0.1.2", pod2)
	l.hops(l.ours.pod, pod3, "10.65.1.1", "10.0.1.254", "10.1.0.21", "10.0.2.3", pod3)
	l.hops(l.pods[3], pod1, "10.65.3.1", "10.0.2.254", "10.1.0.11", "10.0.1.1", pod1)

	l.birds[3].Do("disable", "own")
	l.ours.want("without the block of 3", ways[0])
	l.birds[3].Do("enable", "own")
	l.ours.want("with it", ways...)

	l.cut(11, "down")
	l.ours.want("the ToR is dead")
	l.up(2, false, "t0")
	l.up(21, false, "t11")
	out, err := l.ours.pod.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "5", pod3)
	check.True(t, err != nil && strings.Contains(out, "Unreachable"), "a ping by a dead ToR: %s", out)
	l.cut(11, "up")
	l.ours.want("and back", ways...)
	l.pings(62, 2)
	l.pings(60, 3)
	arp()
}

// An AS for each server: a ToR passes blocks on between neighbours, which reach each other without it. The ToR of the other rack is cut
// off, which its neighbour finds by BFD: its routes are gone, and no others.
func TestServerAS(t *testing.T) {
	l := newRacks(t, serverAS, `password "secret";`, 11)
	file := filepath.Join(t.TempDir(), "password")
	check.OK(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	l.start(serverAS, peers(64611, "10.0.1.101", "10.0.1.254"), func(c *Config) { c.Peers[0].PasswordFile = file })
	arp := l.noARP(2, 3, 11, 21)
	ways := []string{"10.65.2.0/26 next hop 10.0.1.2 of 10.0.1.254 via vni 200 ip 10.0.1.2", "10.65.3.0/26 next hop 10.0.1.254 of 10.0.1.254 via vni 200 ip 10.0.1.254"}
	l.ours.want("routes", ways...)
	l.pings(62, 2)
	l.pings(60, 3)
	l.hops(l.pods[2], pod1, "10.65.2.1", "10.0.1.1", pod1)
	l.hops(l.ours.pod, pod3, "10.65.1.1", "10.0.1.254", "10.1.0.21", "10.0.2.3", pod3)

	lost := l.ours.lost(func() {
		l.cut(21, "down")
		l.ours.want("the other rack is gone", ways[0])
		l.pings(62, 2)
		l.cut(21, "up")
		l.ours.want("and back", ways...)
		l.pings(60, 3)
	})
	check.Equal(t, "rows lost", len(lost), 1)
	l.birds[2].Do("disable", "own")
	l.ours.want("without the block of 2", ways[1])
	l.birds[2].Do("enable", "own")
	l.ours.want("with it", ways...)
	l.pings(62, 2)
	arp()
}

// Downward default: two ToRs announce a default route only, which nodes use together; pods of the same rack reach each other by them, too.
// One of them is cut off, which BFD finds, and the other has the packets.
func TestDownwardDefault(t *testing.T) {
	l := newRacks(t, downwardDefault, "", 11, 12)
	list := append(peers(64611, "10.0.1.101", "10.0.1.254"), peers(64612, "10.0.1.101", "10.0.1.253")...)
	l.start(downwardDefault, list, func(c *Config) { c.DefaultRoute = true })
	arp := l.noARP(2, 3, 11, 12, 21)
	ways := []string{"0.0.0.0/0 next hop 10.0.1.253 of 10.0.1.253 via vni 200 ip 10.0.1.253", "0.0.0.0/0 next hop 10.0.1.254 of 10.0.1.254 via vni 200 ip 10.0.1.254"}
	l.ours.want("default routes", ways...)
	l.up(2, true, "t0", "t1")
	l.pings(61, 2)
	l.pings(60, 3)
	for i, tor := range []int{11, 12} {
		lost := l.ours.lost(func() {
			l.cut(tor, "down")
			l.ours.want("one default route", ways[i])
			l.up(2, false, fmt.Sprint("t", i))
			l.up(21, false, fmt.Sprint("t", tor))
		})
		check.Equal(t, "rows lost", len(lost), 1)
		l.pings(61, 2)
		l.pings(60, 3)
		other, core := fmt.Sprintf("10.0.1.%d", 253+i), fmt.Sprintf("10.1.0.%d", 12-i)
		l.hops(l.ours.pod, pod2, "10.65.1.1", other, "10.0.1.2", pod2)
		l.hops(l.pods[3], pod1, "10.65.3.1", "10.0.2.254", core, "10.0.1.1", pod1)
		l.cut(tor, "up")
		l.ours.want("both again", ways...)
		l.up(2, true, "t0", "t1")
		l.up(21, true, "t11", "t12")
	}

	// Only the ToRs know that a block is gone.
	l.birds[2].Do("disable", "own")
	l.ours.pod.Until("nobody has the block", func() bool {
		out, err := l.ours.pod.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "5", pod2)
		return err != nil && strings.Contains(out, "Unreachable")
	})
	l.ours.want("default routes stay", ways...)
	arp()
}
