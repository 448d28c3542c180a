package bgp

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/bird"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A lab is a member of ours, whose pod is 10.65.1.5, and hosts with BIRD by number: nodes as Calico has them, of which node i has pod
// 10.65.i.6, route reflectors, and switches of racks.
type lab struct {
	t     *testing.T
	n     *netns.Net
	ours  *member
	hosts map[int]*netns.Host
	pods  map[int]*netns.Host
	birds map[int]*bird.BIRD
	nets  map[int]int         // on how many networks a host is
	gone  map[int]*netns.Proc // what kernels say of routes
}

func newLab(t *testing.T) *lab {
	t.Helper()
	netns.Tool(t, "bird")
	return &lab{
		t: t, n: netns.New(t), hosts: map[int]*netns.Host{}, pods: map[int]*netns.Host{}, birds: map[int]*bird.BIRD{}, nets: map[int]int{},
		gone: map[int]*netns.Proc{},
	}
}

// A plug is an address on a network.
type plug struct {
	sw   *netns.Host
	addr string // 10.0.0.2/24
}

// plug joins a host to networks: eth0, eth1 and so on.
func (l *lab) plug(h *netns.Host, plugs []plug) {
	l.t.Helper()
	for _, p := range plugs {
		dev, _ := l.n.Plug(h, p.addr, p.sw)
		h.TxOff(dev)
	}
	h.Ready()
}

// host makes host i, a router on networks.
func (l *lab) host(i int, plugs ...plug) *netns.Host {
	l.t.Helper()
	h := l.n.Router(fmt.Sprint("bird", i))
	h.Sysctl("net.ipv4.conf.all.send_redirects", "0")
	h.Sysctl("net.ipv4.conf.default.send_redirects", "0")
	l.plug(h, plugs)
	l.hosts[i], l.nets[i], l.gone[i] = h, len(plugs), h.Start("ip", "-4", "monitor", "route")
	return h
}

// node makes host i with a pod.
func (l *lab) node(i int, plugs ...plug) {
	l.t.Helper()
	h, pod := l.host(i, plugs...), l.n.Host(fmt.Sprint("pod", i))
	l.n.Link(h, fmt.Sprintf("10.65.%d.1/26", i), pod, fmt.Sprintf("10.65.%d.6/26", i))
	pod.Route("default", "via", fmt.Sprintf("10.65.%d.1", i))
	pod.Ready()
	l.pods[i] = pod
}

// bird starts BIRD on host i.
func (l *lab) bird(i int, conf string) {
	l.t.Helper()
	l.birds[i] = bird.Start(l.t, l.hosts[i], conf)
}

// member starts ours; its kernel has an address on each network.
func (l *lab) member(s shape, plugs []plug, c *Config) {
	l.t.Helper()
	h := l.n.Host("ours")
	l.plug(h, plugs)
	l.ours = newMember(l.t, l.n, h, s, c)
}

// cut takes the links of a host down, or up: nobody is told.
func (l *lab) cut(i int, state string) {
	l.t.Helper()
	for _, dev := range strings.Fields(l.hosts[i].Run("ls", "/sys/class/net")) {
		if strings.HasPrefix(dev, "eth") {
			l.hosts[i].IP("link", "set", dev, state)
		}
	}
}

// deleted returns how often the kernel of host i has deleted a route.
func (l *lab) deleted(i int) int { return strings.Count(l.gone[i].Output(), "Deleted 10.65.") }

// up waits until sessions of BIRD i are established, or are not.
func (l *lab) up(i int, is bool, sessions ...string) {
	l.t.Helper()
	for _, s := range sessions {
		l.hosts[i].Until(fmt.Sprintf("session %s of BIRD %d is established: %v", s, i, is), func() bool {
			return strings.Contains(l.birds[i].Try("show", "protocols", s), "Established") == is
		})
	}
}

// pings has pods reach each other, and compares the TTLs.
func (l *lab) pings(ttl int, nodes ...int) {
	l.t.Helper()
	for _, i := range nodes {
		check.Equal(l.t, fmt.Sprint("TTL of pod ", i), reach(l.ours.pod, fmt.Sprintf("10.65.%d.6", i)), ttl)
		check.Equal(l.t, fmt.Sprint("TTL of our pod at ", i), reach(l.pods[i], pod1), ttl)
	}
}

// hops compares what traceroute shows.
func (l *lab) hops(from *netns.Host, to string, want ...string) {
	l.t.Helper()
	var got []string
	for range 5 { // a probe may be late
		if got = from.Traceroute(to); slices.Equal(got, want) {
			return
		}
	}
	l.t.Errorf("hops from %s to %s: %v, want %v", from.Name, to, got, want)
}

// podARP matches ARP of pods.
const podARP = "arp and (arp[14:2] = 0x0a41 or arp[24:2] = 0x0a41)"

// noARP begins to look for ARP of pods on the networks of hosts. The function that it returns says that there was none.
func (l *lab) noARP(list ...int) (over func()) {
	l.t.Helper()
	var cs []*netns.Capture
	for _, i := range list {
		for k := range l.nets[i] {
			cs = append(cs, l.hosts[i].Capture(fmt.Sprint("eth", k), podARP))
		}
	}
	return func() {
		l.t.Helper()
		for _, c := range cs {
			if ps := c.Stop(); len(ps) > 0 {
				l.t.Errorf("ARP of pods on a network of nodes:\n%s", netns.Dump(ps))
			}
		}
	}
}

var ttlOf = regexp.MustCompile(` ttl=(\d+) `)

// reach pings until there is an answer, and returns its TTL.
func reach(from *netns.Host, to string) (ttl int) {
	from.Until("ping "+to, func() bool {
		out, err := from.Try(context.Background(), "ping", "-n", "-c", "1", "-W", "1", to)
		if m := ttlOf.FindStringSubmatch(out); err == nil && m != nil {
			ttl, _ = strconv.Atoi(m[1])
		}
		return ttl != 0
	})
	return ttl
}

// pathBFD is that of ours, and bfdConf BIRD's: a path that is dead is found after seconds, long before the hold time of an hour, and
// a machine that is busy makes none dead. linkBFD is for sessions that BIRD calls direct.
var (
	pathBFD = BFD{Interval: 200 * time.Millisecond, Multiplier: 25, Multihop: true}
	linkBFD = BFD{Interval: pathBFD.Interval, Multiplier: pathBFD.Multiplier}
)

const bfdConf = `protocol bfd { interface "eth*" { interval 200 ms; multiplier 25; }; multihop { interval 200 ms; multiplier 25; }; }
`

// common is what each BIRD has. It resolves next hops on eth0.
func common(id string) string {
	return fmt.Sprintf(`router id %s;
protocol device { scan time 2; }
protocol direct { ipv4; interface "eth0"; }
protocol kernel { learn; scan time 2; merge paths on; ipv4 { import none; export filter { if source = RTS_BGP then accept; reject; }; }; }
template bgp quick { connect delay time 1; connect retry time 1; error wait time 1, 2; hold time 3600; bfd on; }
`, id) + bfdConf
}

// blockOf is the block of node i, and what a node announces.
func blockOf(i int) string {
	return fmt.Sprintf(`protocol static own { ipv4; route 10.65.%d.0/26 blackhole; }
filter blocks { if net ~ [ 10.65.0.0/16+ ] && source = RTS_STATIC then accept; reject; }
`, i)
}

// peers are probed from an address of ours.
func peers(as uint32, local string, list ...string) (ps []Peer) {
	for _, a := range list {
		ps = append(ps, Peer{Addr: addr(a), AS: as, Local: addr(local), Hold: time.Hour, BFD: &pathBFD})
	}
	return ps
}
