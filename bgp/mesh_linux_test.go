package bgp

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/vtep"
)

// A mesh is a member of ours and two hosts with BIRD as nodes of Calico have it, on one network, each with a pod:
//
//	pod1 10.65.1.5 - ours 10.0.0.1 --+-- 10.0.0.2 BIRD - pod2 10.65.2.6
//	                (kernel .101)    +-- 10.0.0.3 BIRD - pod3 10.65.3.6
type mesh struct{ *lab }

// birdConf is that of node i, with more of its sessions. Routes of ours that skip matches are not for its kernel.
func birdConf(i int, skip, sessions string) string {
	return fmt.Sprintf(`router id 10.0.0.%[1]d;
protocol device { scan time 2; }
protocol direct { ipv4; interface "eth0"; }
protocol static own { ipv4; route 10.65.%[1]d.0/26 blackhole; }
protocol kernel { learn; scan time 2; merge paths on; ipv4 { import none; export filter { if source != RTS_BGP || net ~ [ %[3]s ] then reject; accept; }; }; }
template bgp calico { local 10.0.0.%[1]d as 64512; multihop; connect delay time 1; connect retry time 1; error wait time 1, 2; %[4]s
  ipv4 { import all; gateway recursive; add paths on; export filter { if net ~ [ 10.65.0.0/16+ ] && source = RTS_STATIC then accept; reject; }; }; }
protocol bgp ours from calico { neighbor 10.0.0.101 as 64512; }
protocol bgp mesh from calico { neighbor 10.0.0.%[2]d as 64512; }
`, i, 5-i, skip, sessions)
}

const (
	nothing = "203.0.113.0/32"
	ourOwn  = "10.65.1.0/26" // by a tunnel that BIRD does not know of
)

// memberSettings are those of ours: 10.65.3.0/24 is a pool with IP in IP, the rest is direct.
func memberSettings() *Config {
	return &Config{
		AS: 64512, RouterID: addr("10.0.0.101"), VRF: "v", Segment: 200, Addresses: []netip.Addr{addr("10.0.0.1")}, Listen: []netip.Addr{addr("10.0.0.101")},
		Announce: prefixes("10.65.1.0/26"),
		Pools:    []Pool{{Prefix: prefix("10.65.0.0/16")}, {Prefix: prefix("10.65.3.0/24"), Encapsulation: IPIP, Segment: 100}},
		Peers: []Peer{
			{Addr: addr("10.0.0.2"), AS: 64512, Local: addr("10.0.0.101"), Hold: 9 * time.Second},
			{Addr: addr("10.0.0.3"), AS: 64512, Local: addr("10.0.0.101"), Hold: 9 * time.Second},
		},
	}
}

const (
	way2  = "10.65.2.0/26 next hop 10.0.0.2 of 10.0.0.2 via vni 200 ip 10.0.0.2"
	way3  = "10.65.3.0/26 next hop 10.0.0.3 of 10.0.0.3 via vni 100 vtep 10.0.0.3:0"
	pod1  = "10.65.1.5"
	pod2  = "10.65.2.6"
	pod3  = "10.65.3.6"
	block = "10.65.1.0/26"
)

func newMesh(t *testing.T) *mesh {
	t.Helper()
	m := &mesh{newLab(t)}
	sw := m.n.Switch("sw")
	for i := 2; i <= 3; i++ {
		m.node(i, plug{sw, fmt.Sprintf("10.0.0.%d/24", i)})
	}
	m.tunnel(3)
	m.bird(2, birdConf(2, nothing, ""))
	m.bird(3, birdConf(3, ourOwn, ""))
	m.member(rack, []plug{{sw, "10.0.0.101/24"}}, memberSettings())
	return m
}

// tunnel gives a host what the kernel has not everywhere: a device for IP in IP to ours.
func (m *mesh) tunnel(i int) {
	m.t.Helper()
	n := check.Must(node.New(nil))(m.t)
	m.hosts[i].Do(func() {
		check.OK(m.t, n.Apply(&node.Config{
			Tunnels:  []node.Tunnel{{Config: vtep.Config{Name: "raw", Type: encap.TypeIPIP}, Local: addr(fmt.Sprintf("10.0.0.%d", i))}},
			Ports:    []node.Port{{Name: "tun0", Type: node.PortTUN}},
			Segments: []node.Segment{{VNI: 1, Tunnel: "raw", Members: []node.Member{{Port: "tun0"}}, CrossConnect: addr("10.0.0.1")}},
		}))
	})
	done := make(chan error, 1)
	go func() { done <- n.Run(m.t.Context()) }()
	m.t.Cleanup(func() {
		n.Close()
		<-done
	})
	m.hosts[i].Up("tun0")
	m.hosts[i].Route(block, "dev", "tun0")
}

// Two nodes with BIRD and ours in a mesh: pods reach pods both ways, as they are and in IP; withdrawals, new blocks and pools under
// way, and the loss of a session.
func TestMesh(t *testing.T) {
	m := newMesh(t)
	m.ours.want("routes", way2, way3)
	for i := 2; i <= 3; i++ {
		m.hosts[i].Until("BIRD has our block", func() bool {
			out := m.birds[i].Try("show", "route", block, "all")
			return strings.Contains(out, "BGP.next_hop: 10.0.0.1\n")
		})
	}
	m.hosts[2].Until("BIRD's kernel has it", func() bool { return strings.Contains(m.hosts[2].IP("route", "show", block), "via 10.0.0.1 dev eth0") })
	if out := m.birds[2].Try("show", "route", "10.65.3.0/26", "all"); strings.Contains(out, "10.0.0.101") {
		t.Errorf("we have passed a route on:\n%s", out)
	}
	wire := m.hosts[3].Capture("eth0", "ip proto 4")
	direct := m.hosts[2].Capture("eth0", "icmp")
	m.pings(62, 2, 3)
	check.True(t, len(wire.Stop()) >= 4, "packets of pod 3 are not in IP")
	check.True(t, len(direct.Stop()) >= 4, "packets of pod 2 are not as they are")

	// BIRD takes its block back, has another one, and both are followed.
	conf := birdConf(2, nothing, "")
	m.birds[2].Configure(strings.ReplaceAll(conf, "route 10.65.2.0/26 blackhole;", "route 10.65.22.0/26 blackhole;"))
	m.ours.want("another block", way3, strings.ReplaceAll(way2, "10.65.2.0", "10.65.22.0"))
	// Without a route, the pod is told at once.
	out, err := m.ours.pod.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "5", pod2)
	if err == nil || !strings.Contains(out, "Unreachable") {
		t.Errorf("no route: %v", out)
	}
	m.birds[2].Configure(conf)
	m.ours.want("the block is back", way2, way3)
	check.Equal(t, "TTL", reach(m.ours.pod, pod2), 62)

	// The other pool changes under way: it is direct on this network.
	c := memberSettings()
	c.Pools[1].Mode = CrossSubnet
	m.ours.set(c)
	m.ours.want("direct", way2, strings.ReplaceAll(way3, "vni 100 vtep 10.0.0.3:0", "vni 200 ip 10.0.0.3"))
	c.Pools[1].Mode, c.Announce = Always, nil
	m.ours.set(c)
	m.hosts[2].Until("our block is withdrawn", func() bool { return m.hosts[2].IP("route", "show", block) == "" })
	m.ours.set(memberSettings())
	m.ours.want("in IP again", way2, way3)
	check.Equal(t, "TTL", reach(m.pods[2], pod1), 62)

	// Sessions end: an operator's command, and a BIRD that is killed, whose silence takes the hold time or a closed connection.
	m.birds[2].Do("disable", "ours")
	m.ours.want("one session ended", way3)
	m.birds[3].Kill()
	m.ours.want("no session")
	check.True(t, m.ours.peer("10.0.0.3").State != "established", "there is a session with a peer that is dead")
	m.birds[2].Do("enable", "ours")
	m.ours.want("a session again", way2)
	check.Equal(t, "TTL", reach(m.ours.pod, pod2), 62)
}

// A path that is dead is found by BFD long before the hold time.
func TestMeshBFD(t *testing.T) {
	m := newMesh(t)
	c := memberSettings()
	c.Peers[0].BFD, c.Peers[0].Hold = &BFD{Interval: 100 * time.Millisecond, Multiplier: 5, Multihop: true}, 3600*time.Second
	m.birds[2].Configure(birdConf(2, nothing, "bfd on; hold time 3600;") + "protocol bfd { multihop { interval 100 ms; multiplier 5; }; }\n")
	m.ours.set(c)
	m.ours.h.Until("the path is alive", func() bool { p := m.ours.peer("10.0.0.2"); return p.BFD == "alive" && p.State == "established" })
	m.ours.want("routes", way2, way3)
	m.hosts[2].IP("link", "set", "eth0", "down")
	m.ours.want("the routes of the dead one are gone", way3)
	m.ours.h.Until("it is said why", func() bool { return m.ours.peer("10.0.0.2").Why == "the path is dead" })
	m.hosts[2].IP("link", "set", "eth0", "up")
	m.ours.want("and back", way2, way3)
}
