package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/bird"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A mixedLab is a cluster with pools of each kind, of nodes in two networks by their Node resources, which are one wire. The third has BIRD:
//
//	pod1 10.65.1.5 10.66.1.5 10.67.1.5 --- node1 192.0.2.21/28 ---+--- etcd 192.0.2.100
//	pod2 10.65.2.5 10.66.2.5           --- node2 192.0.2.37/28 ---+--- node3 192.0.2.25/28, BIRD --- pod3 10.65.3.5 10.67.3.5
//
//	10.65.0.0/16  ipipMode CrossSubnet    10.66.0.0/16  vxlanMode CrossSubnet    10.67.0.0/16  no tunnel, by BGP
//
// The hosts of the first two have 192.0.2.11 and .12, from which sessions are.
type mixedLab struct {
	*calicoLab
	bird  *bird.BIRD
	texts [2]string
}

const mixedNode = `{
  "tunnels": [
    {"name": "vxlan0", "underlay": "packet", "bind": "eth0", "local": "192.0.2.ADDR", "peers": "listed"},
    {"name": "ipip0", "type": "ipip", "underlay": "packet", "bind": "eth0", "local": "192.0.2.ADDR", "peers": "listed"}
  ],
  "ports": [{"name": "eth0", "type": "packet"}, {"name": "podNODE", "mtu": 1450}],
  "segments": [
    {"vni": 1, "members": [{"port": "podNODE"}],
     "gateway": {"vrf": "cluster", "addresses": ["10.65.NODE.1/26", "10.66.NODE.1/26", "10.67.NODE.1/26"], "mac": "02:00:00:ee:00:01"}},
    {"vni": 100, "tunnel": "ipip0", "gateway": {"vrf": "cluster"}},
    {"vni": 200, "members": [{"port": "eth0"}], "gateway": {"vrf": "cluster", "addresses": ["192.0.2.ADDR/24"], "mac": "02:00:00:ca:00:0NODE"}},
    {"vni": 4096, "tunnel": "vxlan0", "gateway": {"vrf": "cluster", "mac": "VXLANMAC"}}
  ],
  "vrfs": [{"name": "cluster"}],
  "calico": {
    "node": "nodeNODE", "vrf": "cluster", "segment": 200, "ipip": {"segment": 100}, "vxlan": {"segment": 4096}, "listen": ["192.0.2.1NODE"], "local": ["192.0.2.1NODE"],
    "etcd": {"endpoints": ["http://192.0.2.100:2379"]}
  },
  "control": {"socket": "SOCKET"}
}`

const mixedBIRD = `
router id 192.0.2.25;
protocol device { }
protocol direct { ipv4; interface "eth0"; }
protocol static { ipv4; route 10.67.3.0/26 blackhole; }
protocol kernel { ipv4 { import none; export where source = RTS_BGP; }; }
protocol bgp node1 {
  local 192.0.2.25 as 64512;
  neighbor 192.0.2.11 as 64512;
  multihop;
  connect retry time 1;
  error wait time 1, 2;
  ipv4 { gateway recursive; import where net ~ 10.67.0.0/16; export where source = RTS_STATIC; };
}
`

func newMixedLab(t *testing.T) *mixedLab {
	netns.Tool(t, "bird")
	n := netns.New(t)
	wire := n.Switch("wire")
	l := &mixedLab{calicoLab: &calicoLab{etcdHost: newEtcdHost(t, n, wire), net: n, wire: wire}}
	pool := func(name, cidr, vxlan, ipip string) {
		l.put("IPPool", "ippools", name, fmt.Sprintf(`{"cidr":%q,"vxlanMode":%q,"ipipMode":%q,"blockSize":26,"nodeSelector":"all()"}`, cidr, vxlan, ipip))
	}
	pool("ipip", "10.65.0.0/16", "Never", "CrossSubnet")
	pool("vxlan", "10.66.0.0/16", "CrossSubnet", "Never")
	pool("plain", "10.67.0.0/16", "Never", "Never")
	l.put("BGPConfiguration", "bgpconfigurations", "default", `{"nodeToNodeMeshEnabled":false,"asNumber":64512}`)
	for i, addr := range []int{21, 37, 25} {
		name := fmt.Sprint("node", i+1)
		l.put("Node", "nodes", name, fmt.Sprintf(`{"bgp":{"ipv4Address":"192.0.2.%d/28","ipv4IPIPTunnelAddr":"10.65.%d.0"},"ipv4VXLANTunnelAddr":"10.66.%[2]d.0"}`, addr, i+1))
		for _, p := range []int{65, 66, 67} {
			l.block(fmt.Sprintf("10.%d.%d.0/26", p, i+1), name)
		}
	}
	l.put("BGPPeer", "bgppeers", "bird", `{"node":"node1","peerIP":"192.0.2.25","asNumber":64512}`)
	l.put("BGPPeer", "bgppeers", "one", `{"node":"node1","peerIP":"192.0.2.12","asNumber":64512}`)
	l.put("BGPPeer", "bgppeers", "two", `{"node":"node2","peerIP":"192.0.2.11","asNumber":64512}`)

	host := n.Router("node3")
	n.Plug(host, "192.0.2.25/24", wire)
	host.TxOff("eth0")
	l.pods[2] = n.Host("pod3")
	n.Link(host, "10.65.3.1/26", l.pods[2], "10.65.3.5/26")
	l.pods[2].Route("default", "via", "10.65.3.1")
	l.pods[2].Addr("eth0", "10.67.3.5/26")
	host.Addr("eth1", "10.67.3.1/26")
	host.Route("10.65.1.0/26", "via", "192.0.2.21") // as its Felix has it
	l.bird = bird.Start(t, host, mixedBIRD)
	for i := range l.nodes {
		name, addr := fmt.Sprint("node", i+1), []string{"21", "37"}[i]
		l.texts[i] = strings.NewReplacer("NODE", fmt.Sprint(i+1), "ADDR", addr, "VXLANMAC", calicoMAC(name)).Replace(mixedNode)
		l.nodes[i], l.pods[i] = podNode(t, n, wire, i, l.texts[i])
		for _, p := range []int{66, 67} {
			l.pods[i].Addr("eth0", fmt.Sprintf("10.%d.%d.5/26", p, i+1))
		}
	}
	for i, pod := range l.pods {
		for _, p := range []int{66, 67} {
			if i < 2 || p == 67 {
				pod.Route(fmt.Sprintf("10.%d.0.0/16", p), "via", fmt.Sprintf("10.%d.%d.1", p, i+1), "src", fmt.Sprintf("10.%d.%d.5", p, i+1))
			}
		}
	}
	return l
}

// A node beside BIRD: CrossSubnet is a tunnel to the other network, and none in its own; a pool without tunnels is what peers announce.
func TestCalicoMixed(t *testing.T) {
	t.Parallel()
	l := newMixedLab(t)
	a := l.nodes[0]
	l.reach(1, "10.65.2.5")
	l.reach(2, "10.65.1.5")
	l.reach(1, "10.66.2.5")
	l.reach(2, "10.66.1.5")
	l.reach(1, "10.65.3.5")
	l.reach(3, "10.65.1.5")
	l.reach(1, "10.67.3.5")
	l.reach(3, "10.67.1.5")
	a.says("bgp peers", `\n192\.0\.2\.12 +64512 +established .*\n192\.0\.2\.25 +64512 +established `)
	for _, want := range []string{
		`cluster +10\.65\.2\.0/26 +via +calico +vni 100 peer 192\.0\.2\.37\n`, `cluster +10\.66\.2\.0/26 +via +calico +vni 4096 mac [0-9a-f:]+ peer 192\.0\.2\.37:4789\n`,
		`cluster +10\.65\.3\.0/26 +via +calico +vni 200 via 192\.0\.2\.25\n`, `cluster +10\.67\.3\.0/26 +via +bgp +vni 200 via 192\.0\.2\.25\n`,
	} {
		a.says("route", want)
	}

	// What BIRD does not announce any more has no route, and what the datastore says has.
	l.bird.Configure(strings.Replace(mixedBIRD, "route 10.67.3.0/26 blackhole;", "", 1))
	a.Until("no route of BIRD's", func() bool { return !strings.Contains(a.ctl("route"), "10.67.3.0/26") })
	l.reach(1, "10.65.3.5")
	l.bird.Configure(mixedBIRD)
	l.reach(1, "10.67.3.5")

	// The pool changes under way: BIRD's node is reached by a tunnel, which it has none of, and then directly again.
	l.put("IPPool", "ippools", "ipip", `{"cidr":"10.65.0.0/16","vxlanMode":"Never","ipipMode":"Always","blockSize":26,"nodeSelector":"all()"}`)
	a.says("route", `cluster +10\.65\.3\.0/26 +via +calico +vni 100 peer 192\.0\.2\.25\n`)
	l.reach(1, "10.65.2.5")
	l.put("IPPool", "ippools", "ipip", `{"cidr":"10.65.0.0/16","vxlanMode":"Never","ipipMode":"CrossSubnet","blockSize":26,"nodeSelector":"all()"}`)
	l.reach(1, "10.65.3.5")
	l.bird.Kill()
	l.reach(1, "10.65.3.5")
	l.reach(2, "10.66.1.5")
}
