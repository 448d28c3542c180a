package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/bird"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A bgpLab has the nodes of the sample bgp, and as the third one a host with BIRD, each with a pod.
type bgpLab struct {
	t     *testing.T
	nodes [2]*system
	host  *netns.Host // the third node
	bird  *bird.BIRD
	pods  [3]*netns.Host
}

func newBGPLab(t *testing.T) *bgpLab {
	netns.Tool(t, "bird")
	n := netns.New(t)
	l := &bgpLab{t: t, host: n.Router("node3")}
	wire := n.Switch("wire")
	n.Plug(l.host, "192.0.2.13/24", wire)
	l.host.TxOff("eth0")
	l.pods[2] = n.Host("pod3")
	n.Link(l.host, "10.65.3.1/26", l.pods[2], "10.65.3.5/26")
	l.pods[2].Route("default", "via", "10.65.3.1")
	for i := range l.nodes {
		l.nodes[i], l.pods[i] = podNode(t, n, wire, i, sample(t, fmt.Sprintf("bgp/node%d.json", i+1)))
	}
	l.bird = bird.Start(t, l.host, sample(t, "bgp/bird.conf"))
	return l
}

// reach waits until each pod reaches the others, with a TTL of two routers.
func (l *bgpLab) reach() {
	l.t.Helper()
	for i, pod := range l.pods {
		for k := range l.pods {
			if k != i {
				reachPod(l.t, pod, fmt.Sprintf("10.65.%d.5", k+1))
			}
		}
	}
}

// reachPod waits until a pod reaches an address, with the TTL of two routers.
func reachPod(t *testing.T, pod *netns.Host, to string) {
	t.Helper()
	pod.Until("ping "+to, func() bool {
		_, err := pod.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", to)
		return err == nil
	})
	if ttl := pod.PingTTL(to); ttl != 62 {
		t.Errorf("%s to %s: TTL %d, want 62", pod.Name, to, ttl)
	}
}

// podNode starts a node on a wire, with 192.0.2.11 and so on for i from 0, and a pod on its TAP.
func podNode(t *testing.T, n *netns.Net, wire *netns.Host, i int, text string) (s *system, pod *netns.Host) {
	t.Helper()
	s = newSystem(t, n, fmt.Sprint("node", i+1))
	n.Plug(s.Host, fmt.Sprintf("192.0.2.%d/24", 11+i), wire)
	s.TxOff("eth0")
	pod = s.guestAt(n, fmt.Sprint("guest", i+1), fmt.Sprintf("10.65.%d.5/26", i+1), fmt.Sprint("pod", i+1), "br0")
	pod.Route("default", "via", fmt.Sprintf("10.65.%d.1", i+1))
	s.write(text)
	s.run()
	return s, pod
}

// since is when the session of the first node with a peer began.
func (l *bgpLab) since(peer string) (at time.Time) {
	l.t.Helper()
	peers, err := api.NewClient(l.nodes[0].socket).BGPPeers(l.t.Context())
	must(l.t, err)
	for _, p := range peers {
		if p.Address == peer && p.Since != nil {
			at = *p.Since
		}
	}
	return at
}

// The sample bgp: pods reach pods of all nodes, both ways.
func TestBGPMesh(t *testing.T) {
	t.Parallel()
	l := newBGPLab(t)
	l.reach()
	l.nodes[0].says("bgp", `state +running since [-\d: ]+\nerror +-\nAS +64512\nrouter ID +192\.0\.2\.11\nVRF +cluster\npeers +2\nsessions +2\nannounced +10\.65\.1\.0/26\nroutes of peers +2\naccepted +2\n$`)
	l.nodes[0].says("bgp peers", `\n192\.0\.2\.12 +64512 +established +\S+ +9s +- +1 +1 +- +\d+ +\d+ +(-|[^\n]+)\n192\.0\.2\.13 +64512 +established +\S+ +9s +- +1 +1 +- `)
	l.nodes[0].says("bgp routes", `^PREFIX.*\n10\.65\.1\.0/26 +192\.0\.2\.21 +- +- +-\n10\.65\.2\.0/26 +192\.0\.2\.22 +192\.0\.2\.12 +vni 200 ip 192\.0\.2\.22 +-\n10\.65\.3\.0/26 +192\.0\.2\.13 +192\.0\.2\.13 +vni 200 ip 192\.0\.2\.13 +-\n$`)
	l.nodes[0].says("bgp routes peer 192.0.2.13", `^PREFIX.*\n10\.65\.3\.0/26 .*\n$`)
	l.nodes[0].says("route", `cluster +10\.65\.3\.0/26 +via +bgp +vni 200 via 192\.0\.2\.13\n`)
	for words, want := range map[string]string{
		"bgp sessions":          `bgp: "sessions": must be one of show, peers, routes`,
		"bgp routes dev x":      `bgp: unexpected "dev"; allowed is peer`,
		"bgp routes peer node3": `bgp: peer "node3": must be the address of a peer such as 10.0.0.2`,
	} {
		if out, err := l.nodes[0].tryCtl(words); err == nil || !strings.HasPrefix(out, "vxsctl: "+want) {
			t.Errorf("vxsctl %s: %v\n%s", words, err, out)
		}
	}
}

// Under traffic, a reload puts packets between two nodes in IP; sessions and other routes stay. What a reload refuses changes nothing.
func TestBGPReload(t *testing.T) {
	t.Parallel()
	l := newBGPLab(t)
	l.reach()
	before := l.since("192.0.2.13")
	ended := make(chan string)
	go func() {
		out, _ := l.pods[0].Try(t.Context(), "ping", "-n", "-i", "0.02", "-c", "400", "-W", "1", "10.65.3.5")
		ended <- out
	}()
	text := sample(t, "bgp/node1.json")
	l.nodes[0].write(strings.Replace(text, `"192.0.2.13", "as": 64512`, `"192.0.2.13", "as": 0`, 1))
	if out, err := l.nodes[0].tryCtl("reload"); err == nil || !strings.Contains(out, "bgp.peers[1].as: 0: must be 1 to 4294967295") {
		t.Error(out)
	}
	always := `"pools": [{"prefix": "10.65.%d.0/24", "encapsulation": "ipip", "segment": 100}, `
	l.nodes[0].reload(strings.Replace(text, `"pools": [`, fmt.Sprintf(always, 2), 1))
	l.nodes[1].reload(strings.Replace(sample(t, "bgp/node2.json"), `"pools": [`, fmt.Sprintf(always, 1), 1))
	l.nodes[0].says("bgp routes", `\n10\.65\.2\.0/26 +192\.0\.2\.22 +192\.0\.2\.12 +vni 100 vtep 192\.0\.2\.22:0 `)
	l.nodes[1].says("bgp routes", `\n10\.65\.1\.0/26 +192\.0\.2\.21 +192\.0\.2\.11 +vni 100 vtep 192\.0\.2\.21:0 `)
	wire := l.nodes[0].Capture("eth0", "ip proto 4")
	l.reach()
	if n := len(wire.Stop()); n < 4 {
		t.Errorf("%d packets in IP", n)
	}
	if out := <-ended; !strings.Contains(out, " 0% packet loss") {
		t.Error(out)
	}
	if at := l.since("192.0.2.13"); !at.Equal(before) {
		t.Errorf("the session is of %v, and was of %v", at, before)
	}
}

// Sessions end, the section goes and comes back, and another AS needs new sessions.
func TestBGPEnds(t *testing.T) {
	t.Parallel()
	l := newBGPLab(t)
	l.reach()
	text := sample(t, "bgp/node1.json")
	const block = "10.65.1.0/26"
	gone := func() bool { return l.host.IP("route", "show", block) == "" }

	l.bird.Do("disable", "node1")
	l.nodes[0].says("bgp", `\nsessions +1\n`)
	l.nodes[0].says("bgp routes peer 192.0.2.13", `^PREFIX.*\n$`)
	l.bird.Do("enable", "node1")
	l.nodes[0].says("bgp routes peer 192.0.2.13", `\n10\.65\.3\.0/26 `)

	l.nodes[0].reload(regexp.MustCompile(`(?s)  "bgp": .*?\n  },\n`).ReplaceAllString(text, ""))
	if out, err := l.nodes[0].tryCtl("bgp"); err == nil || !strings.Contains(out, "the configuration has no section bgp") {
		t.Error(out)
	}
	if out := l.nodes[0].ctl("route"); strings.Contains(out, "10.65.3.0/26") {
		t.Errorf("without the section:\n%s", out)
	}
	l.host.Until("our block is withdrawn", gone)
	l.nodes[0].reload(text)
	l.reach()

	l.nodes[0].reload(strings.Replace(text, `"as": 64512, "routerID"`, `"as": 64513, "routerID"`, 1))
	l.nodes[0].says("bgp", `\nAS +64513\n(.*\n)+sessions +0\n(.*\n)+routes of peers +0\n`)
	l.host.Until("our block is withdrawn again", gone)
}
