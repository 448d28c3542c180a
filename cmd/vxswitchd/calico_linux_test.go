package main

import (
	"crypto/sha1"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

const (
	calicoResources = "/calico/resources/v3/projectcalico.org/"
	calicoBlocks    = "/calico/ipam/v2/assignment/ipv4/block/"
)

// A calicoLab has the nodes of the sample calico-etcd, each with a pod that has an address of each pool, etcd with the sample's resources,
// and a third node, whose VXLAN is the kernel's:
//
//	pod1 10.65.1.5 10.66.1.5 --- node1 192.0.2.11 ---+--- etcd 192.0.2.100
//	pod2 10.65.2.5 10.66.2.5 --- node2 192.0.2.12 ---+--- node3 192.0.2.13, the kernel --- pod3 10.65.3.5
type calicoLab struct {
	*etcdHost
	net   *netns.Net
	other *netns.Host // by stranger
	wire  *netns.Host
	nodes [2]*system
	pods  [3]*netns.Host
}

func newCalicoLab(t *testing.T) *calicoLab {
	n := netns.New(t)
	wire := n.Switch("wire")
	l := &calicoLab{etcdHost: newEtcdHost(t, n, wire), net: n, wire: wire}
	for line := range strings.Lines(sample(t, "calico-etcd/datastore.txt")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		l.ctl("put", "--", key, value)
	}
	l.node3(n, wire)
	for i := range l.nodes {
		l.nodes[i], l.pods[i] = podNode(t, n, wire, i, sample(t, fmt.Sprintf("calico-etcd/node%d.json", i+1)))
		l.pods[i].Addr("eth0", fmt.Sprintf("10.66.%d.5/26", i+1))
		l.pods[i].Route("10.66.0.0/16", "via", fmt.Sprintf("10.66.%d.1", i+1), "src", fmt.Sprintf("10.66.%d.5", i+1))
	}
	return l
}

// calicoMAC is that of the VXLAN device of a node of Calico.
func calicoMAC(node string) string {
	sum := sha1.Sum([]byte(node))
	return frame.MAC{'f', sum[0], sum[1], sum[2], sum[3], sum[4]}.String()
}

// node3 makes the third node as Felix does it, but for its resources.
func (l *calicoLab) node3(n *netns.Net, wire *netns.Host) {
	h := n.Router("node3")
	n.Plug(h, "192.0.2.13/24", wire)
	h.TxOff("eth0")
	l.pods[2] = n.Host("pod3")
	n.Link(h, "10.65.3.1/26", l.pods[2], "10.65.3.5/26")
	l.pods[2].MTU("eth0", 1450)
	l.pods[2].Route("default", "via", "10.65.3.1")
	h.VXLAN("vxlan.calico", netns.VXLAN{ID: 4096, Local: "192.0.2.13", Dev: "eth0", Addr: "10.65.3.0/32", Args: []string{"nolearning"}})
	h.SetMAC("vxlan.calico", calicoMAC("node3"))
	for i := 1; i <= 2; i++ {
		mac, gateway := calicoMAC(fmt.Sprint("node", i)), fmt.Sprintf("10.65.%d.0", i)
		h.Run("bridge", "fdb", "append", mac, "dev", "vxlan.calico", "dst", fmt.Sprintf("192.0.2.%d", 10+i))
		h.IP("neigh", "add", gateway, "lladdr", mac, "dev", "vxlan.calico", "nud", "permanent")
		h.Route(gateway+"/26", "via", gateway, "dev", "vxlan.calico", "onlink")
	}
}

// put writes a resource as calicoctl does.
func (l *calicoLab) put(kind, list, name, spec string) {
	l.t.Helper()
	l.ctl("put", "--", calicoResources+list+"/"+name, fmt.Sprintf(`{"kind":%q,"apiVersion":"projectcalico.org/v3","metadata":{"name":%q},"spec":%s}`, kind, name, spec))
}

// block writes one as Calico's IPAM does.
func (l *calicoLab) block(prefix, node string) {
	l.t.Helper()
	free := strings.TrimSuffix(strings.Repeat("null,", 64), ",")
	l.ctl("put", "--", calicoBlocks+strings.Replace(prefix, "/", "-", 1), fmt.Sprintf(`{"cidr":%q,"affinity":"host:%s","allocations":[%s],"attributes":[],"deleted":false}`, prefix, node, free))
}

// third puts the third node into the datastore.
func (l *calicoLab) third() {
	l.put("Node", "nodes", "node3", `{"bgp":{"ipv4Address":"192.0.2.13/24"},"ipv4VXLANTunnelAddr":"10.65.3.0"}`)
	l.block("10.65.3.0/26", "node3")
}

func (l *calicoLab) reach(pod int, to string) {
	l.t.Helper()
	reachPod(l.t, l.pods[pod-1], to)
}

// all waits until pods of the first two nodes reach each other by both pools.
func (l *calicoLab) all() {
	l.t.Helper()
	for _, pool := range []string{"10.65", "10.66"} {
		l.reach(1, pool+".2.5")
		l.reach(2, pool+".1.5")
	}
}

// The sample calico-etcd: routes to blocks by VXLAN, and by BGP in IP; what comes and goes in the datastore comes and goes here.
func TestCalico(t *testing.T) {
	t.Parallel()
	l := newCalicoLab(t)
	l.all()
	a := l.nodes[0]
	a.says("calico", `state +running since [-\d: ]+\nerror +-\nnode +node1\nVRF +cluster\nAS +64512\nrouter ID +192\.0\.2\.11\npeers +1\nsessions +1\naddresses +192\.0\.2\.11/24\n`+
		`tunnels +10\.66\.1\.0, 10\.65\.1\.0\nMAC for VXLAN +66:f9:37:c3:7e:94\naffinities +2\nbgpconfigurations +1\nbgpfilters +0\nbgppeers +0\nblocks +4\nfelixconfigurations +0\nippools +2\nnodes +2\nroutes of blocks +1\n`+
		`not done, ippools/default-ipv4-ippool +spec\.natOutgoing is not carried: [^\n]+\n$`)
	a.says("route", `cluster +10\.65\.2\.0/26 +via +calico +vni 4096 mac 66:2d:bf:44:a6:8b peer 192\.0\.2\.12:4789\n`)
	a.says("bgp", `AS +64512\nrouter ID +192\.0\.2\.11\nVRF +cluster\npeers +1\nsessions +1\nannounced +10\.65\.1\.0/26,10\.66\.1\.0/26\nroutes of peers +2\naccepted +1\n`)
	a.says("bgp peers", `\n192\.0\.2\.12 +64512 +established `)
	a.says("bgp routes", `\n10\.66\.1\.0/26 +192\.0\.2\.11 +- +- +-\n(.*\n)*10\.66\.2\.0/26 +192\.0\.2\.12 +192\.0\.2\.12 +vni 100 vtep 192\.0\.2\.12:0 `)

	l.third()
	l.reach(1, "10.65.3.5")
	l.reach(3, "10.65.2.5")
	l.ctl("del", calicoBlocks+"10.65.3.0-26")
	a.says("calico", `\nroutes of blocks +1\n`)
	if _, err := l.pods[0].Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", "10.65.3.5"); err == nil {
		t.Error("a pod of a block that is gone is reached")
	}
	l.ctl("del", calicoResources+"nodes/node2")
	a.says("calico", `\nroutes of blocks +0\n(.*\n)*not done, nodes/node2 +the datastore has no such node that could be read, but addresses on it\n`)
	a.says("bgp routes", `^PREFIX.*\n10\.65\.1\.0/26 .*\n10\.66\.1\.0/26 .*\n$`)
	l.nodes[1].says("calico", `^WHAT.*\nstate +starting since .*\nerror +the datastore has no node "node2"\n`)
}

// While etcd is away packets flow, also after a reload, and what has changed meanwhile comes when it is back. A node that starts
// meanwhile waits for it.
func TestCalicoAway(t *testing.T) {
	t.Parallel()
	l := newCalicoLab(t)
	l.third()
	l.all()
	l.reach(1, "10.65.3.5")
	l.kill()
	a, b := l.nodes[0], l.nodes[1]
	for _, s := range l.nodes {
		s.says("calico", `state +stale since .*\nerror +etcd: `)
	}
	text := sample(t, "calico-etcd/node1.json")
	a.reload(strings.Replace(text, `"node": "node1",`, `"node": "node1", "distance": 30,`, 1))
	a.says("calico", `state +stale since `)
	l.all()
	l.reach(1, "10.65.3.5")

	b.proc.Signal(syscall.SIGKILL)
	b.proc.Wait()
	b.run()
	b.says("calico", `state +starting since .*\n`)
	if _, err := b.tryCtl("bgp routes"); err != nil {
		t.Error(err)
	}
	l.begin()
	l.ctl("del", calicoBlocks+"10.65.3.0-26")
	for _, s := range l.nodes {
		s.says("calico", `state +running since .*\n(.*\n)*routes of blocks +1\n`)
	}
	l.all()
}

// A reload changes the section under way, or says what is wrong; without the section nothing of it stays.
func TestCalicoReload(t *testing.T) {
	t.Parallel()
	l := newCalicoLab(t)
	l.all()
	a, c := l.nodes[0], api.NewClient(l.nodes[0].socket)
	since := func() string {
		peers, err := c.BGPPeers(t.Context())
		must(t, err)
		return fmt.Sprint(len(peers), peers[0].Since)
	}
	before := since()
	text := sample(t, "calico-etcd/node1.json")
	a.reload(strings.Replace(text, `"endpoints": ["http://192.0.2.100:2379"]`, `"endpoints": ["http://192.0.2.100:2379", "http://192.0.2.99:2379"], "timeout": "3s"`, 1))
	a.says("config", `"timeout": "3s"`)
	l.all()
	if now := since(); now != before {
		t.Errorf("the session is of %s, and was of %s", now, before)
	}
	for from, to := range map[string]string{
		`"vrf": "cluster", "ipip"`: `"vrf": "other", "ipip"`,
		`"node": "node1"`:          `"node": ""`,
		`"etcd": {`:                `"etcd": {"caFile": "nowhere", `,
		`"calico": {`:              `"bgp": {` + strings.ReplaceAll(quietBGP, "red", "cluster") + `}, "calico": {`,
	} {
		a.write(strings.Replace(text, from, to, 1))
		out, err := a.tryCtl("reload")
		want := map[string]string{
			`"vrf": "cluster", "ipip"`: `calico.vrf: "other": no such VRF`, `"node": "node1"`: `calico.node: "": must be the name of a Node resource`,
			`"etcd": {`: `calico.etcd.caFile: "nowhere": no such file or directory`, `"calico": {`: `calico.noBGP: false: must be true with the section bgp`,
		}[from]
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v %s", to, err, out)
		}
	}
	l.all()

	a.reload(strings.Replace(text, `"vrf": "cluster", "ipip"`, `"vrf": "cluster", "noBGP": true, "ipip"`, 1))
	a.says("calico", `state +running .*\n(.*\n)*routes of blocks +4\n`) // two of our own, where nobody is
	if out, err := a.tryCtl("bgp"); err == nil || !strings.Contains(out, "the configuration has no section bgp, nor calico with BGP") {
		t.Error(out)
	}
	l.reach(1, "10.65.2.5") // who is without BGP announces nothing: node2 has no route to the block of the other pool

	a.reload(regexp.MustCompile(`(?s)  "calico": .*?\n  },\n`).ReplaceAllString(text, ""))
	if out := a.ctl("route"); strings.Contains(out, "calico") || strings.Contains(out, "10.66.2.0") {
		t.Errorf("without the section:\n%s", out)
	}
	if out, err := a.tryCtl("calico"); err == nil || !strings.Contains(out, "the configuration has no section calico") {
		t.Error(out)
	}
	a.reload(text)
	l.all()

	a.reload(strings.Replace(text, "66:f9:37:c3:7e:94", "02:00:00:00:00:01", 1))
	a.says("calico", `\nnot done, nodes/node1 +other nodes send to 66:f9:37:c3:7e:94, and the gateway of segment 4096 has the MAC 02:00:00:00:00:01\n`)
}

// A port of a workload is closed until its endpoint is known, also while a node starts without its datastore, and then has the policies of
// the cluster.
func TestCalicoPolicy(t *testing.T) {
	t.Parallel()
	l := newCalicoLab(t)
	l.all()
	a := l.nodes[0]
	closed := func(why string) {
		t.Helper()
		a.says("calico", `\nworkload pod1 +closed: `+why+`\n`)
		if _, err := l.pods[0].Try(t.Context(), "ping", "-n", "-c", "2", "-i", "0.2", "-W", "1", "10.65.2.5"); err == nil {
			t.Errorf("%s: a closed port lets packets through", why)
		}
	}
	without := sample(t, "calico-etcd/node1.json")
	text := strings.Replace(without, `"node": "node1",`, `"node": "node1", "workloads": {"ports": {"pod1": "default/node1-k8s-pod1-eth0"}},`, 1)
	a.reload(text)
	closed("no WorkloadEndpoint of the node is known")
	l.put("Tier", "tiers", "default", `{"order":1000000,"defaultAction":"Deny"}`)
	l.put("GlobalNetworkPolicy", "globalnetworkpolicies", "default.ping", `{"tier":"default","selector":"all()","types":["Ingress","Egress"],"ingress":[{"action":"Allow","protocol":"ICMP"}],"egress":[{"action":"Allow","protocol":"ICMP"}]}`)
	l.put("WorkloadEndpoint", "workloadendpoints/default", "node1-k8s-pod1-eth0", `{"node":"node1","orchestrator":"k8s","pod":"pod1","endpoint":"eth0","interfaceName":"cali1","ipNetworks":["10.65.1.5/32","10.66.1.5/32"]}`)
	a.says("calico", `\nworkload pod1 +default/node1-k8s-pod1-eth0: globalnetworkpolicies/default\.ping\n`)
	l.all()

	fails := func(next string) {
		t.Helper()
		a.write(strings.Replace(next, `"ports": [`, `"ports": [{"name": "gone", "type": "packet"}, `, 1))
		if out, err := a.tryCtl("reload"); err == nil || !strings.Contains(out, "gone") {
			t.Fatalf("reload: %v %s", err, out)
		}
		a.write(text)
	}
	fails(strings.Replace(text, `"pod1": "default/node1-k8s-pod1-eth0"`, `"pod9": "default/node1-k8s-pod9-eth0"`, 1))
	a.says("calico", `\nworkload pod1 +default/node1-k8s-pod1-eth0: globalnetworkpolicies/default\.ping\n`)
	l.all()

	l.kill()
	fails(without)
	if out, err := l.pods[0].Try(t.Context(), "ping", "-n", "-c", "1", "-W", "2", "10.65.1.1"); err != nil {
		t.Errorf("a reload that failed has closed the port: %s", out)
	}
	a.proc.Signal(syscall.SIGKILL)
	a.proc.Wait()
	a.run()
	closed("the datastore has not been read")
	l.begin()
	l.all()

	l.ctl("del", calicoResources+"globalnetworkpolicies/default.ping")
	a.says("calico", `\nworkload pod1 +default/node1-k8s-pod1-eth0: no policies\n`)
	l.ctl("del", calicoResources+"workloadendpoints/default/node1-k8s-pod1-eth0")
	closed("no WorkloadEndpoint of the node is known")
	a.reload(without)
	l.all()
}
