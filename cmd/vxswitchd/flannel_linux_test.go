package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/cni"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// flannelConfig is the sample, with the test's files.
func flannelConfig(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("configs/flannel/node.json")
	must(t, err)
	return strings.NewReplacer(api.DefaultSocket, "SOCKET", `"pods"`, `"subnetFile": "SUBNETS", "pods"`).Replace(string(text))
}

// withoutFlannel is the file without the section.
func withoutFlannel(text string) string {
	before, rest, _ := strings.Cut(text, `  "flannel"`)
	_, after, _ := strings.Cut(rest, "\n")
	return before + after
}

// A flannelLab is a flannel network of vxswitchd nodes, and its etcd:
//
//	pod a --- TAP --- vxswitchd a --- eth0 192.0.2.1 ---+
//	pod b --- TAP --- vxswitchd b --- eth0 192.0.2.2 ---+--- etcd 192.0.2.100
type flannelLab struct {
	*etcdHost
	net *netns.Net
	sw  *netns.Host
}

func newFlannelLab(t *testing.T, network string) *flannelLab {
	n := netns.New(t)
	sw := n.Switch("sw")
	l := &flannelLab{etcdHost: newEtcdHost(t, n, sw), net: n, sw: sw}
	l.ctl("put", "/coreos.com/network/config", network)
	return l
}

// A flannelNode is one with a pod.
type flannelNode struct {
	*system
	c       *api.Client
	subnets string // file
	subnet  netip.Prefix
	pod     *netns.Host
}

// node makes and starts host I with the sample, changed by a Replacer's words.
func (l *flannelLab) node(i int, words ...string) *flannelNode {
	l.t.Helper()
	s := newSystem(l.t, l.net, fmt.Sprint("n", i))
	l.net.Plug(s.Host, fmt.Sprintf("192.0.2.%d/24", i), l.sw)
	x := &flannelNode{system: s, c: api.NewClient(s.socket), subnets: filepath.Join(filepath.Dir(s.file), "subnet.env")}
	x.writeFile(strings.NewReplacer(words...).Replace(flannelConfig(l.t)))
	x.run()
	x.subnet = netip.MustParsePrefix(x.wait("ready").Lease.Subnet)
	return x
}

func (x *flannelNode) writeFile(text string) { x.write(strings.ReplaceAll(text, "SUBNETS", x.subnets)) }

// wait waits for a state of the section.
func (x *flannelNode) wait(state string) (f api.Flannel) {
	x.t.Helper()
	x.Until("flannel is "+state, func() (ok bool) {
		var err error
		f, err = x.c.Flannel(x.t.Context())
		return err == nil && f.State == state
	})
	return f
}

// attach makes a pod, as vxswitch-cni does.
func (l *flannelLab) attach(x *flannelNode) {
	x.t.Helper()
	x.pod = l.net.Host("pod-" + x.Name)
	x.pod.IP("tuntap", "add", "eth0", "mode", "tap")
	x.pod.IP("link", "property", "add", "dev", "eth0", "altname", "pod1")
	gate := x.subnet.Addr().Next()
	x.pod.Addr("eth0", x.ip()+"/24")
	x.pod.MTU("eth0", 1450)
	x.pod.Up("eth0")
	x.pod.Route("default", "via", gate.String())
	vni := frame.VNI(200)
	_, err := x.c.ChangePort(x.t.Context(), api.PortChange{Op: api.Add, Name: "pod1", Namespace: netns.Folder + "/" + x.pod.NS, VNI: &vni, Owner: "test"}, nil)
	must(x.t, err)
}

// ip is high in the subnet: host-local begins with the second address.
func (x *flannelNode) ip() string {
	a := x.subnet.Addr().As4()
	a[3] = 200
	return netip.AddrFrom4(a).String()
}

// reach is reachPod both ways.
func reach(a, b *flannelNode) {
	a.t.Helper()
	for _, x := range [][2]*flannelNode{{a, b}, {b, a}} {
		reachPod(a.t, x[0].pod, x[1].ip())
	}
}

// cni has the CNI plugin flannel, with vxswitch-cni as its delegate, make a pod on node a, which reaches that of b, and take it away.
func (l *flannelLab) cni(a, b *flannelNode) {
	l.t.Helper()
	bin, err := cni.Plugins("meta/flannel", "ipam/host-local")
	must(l.t, err)
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", a.bin, "../vxswitch-cni").CombinedOutput(); err != nil {
		l.t.Fatalf("go build: %v\n%s", err, out)
	}
	pod, dir := l.net.Host("cni"), l.t.TempDir()
	text := fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "pods", "type": "flannel", "subnetFile": %q, "dataDir": %q, "ipam": {"type": "host-local", "dataDir": %q},
		"delegate": {"type": "vxswitch-cni", "vni": 200, "port": "tap", "socket": %q}}`, a.subnets, dir+"/flannel", dir+"/ipam", a.socket)
	conf := filepath.Join(dir, "conf")
	must(l.t, os.WriteFile(conf, []byte(text), 0o644))
	run := func(command string) string {
		l.t.Helper()
		return a.Run("env", "CNI_COMMAND="+command, "CNI_CONTAINERID=pod", "CNI_IFNAME=eth0", "CNI_NETNS="+netns.Folder+"/"+pod.NS, "CNI_PATH="+bin+":"+a.bin,
			"sh", "-c", filepath.Join(bin, "flannel")+" <"+conf)
	}
	var result struct {
		IPs []struct{ Address netip.Prefix }
	}
	out := run("ADD")
	must(l.t, json.Unmarshal([]byte(out), &result))
	if len(result.IPs) != 1 || !a.subnet.Contains(result.IPs[0].Address.Addr()) {
		l.t.Fatalf("%s", out)
	}
	ip := result.IPs[0].Address.Addr().String()
	if ip == a.ip() { // the pod that the test has made
		run("DEL")
		l.t.Fatalf("the address of another pod: %s", ip)
	}
	pod.Until("the pod reaches another node's", func() bool {
		_, err := pod.Try(l.t.Context(), "ping", "-n", "-c", "1", "-W", "1", b.ip())
		return err == nil
	})
	b.pod.Ping(ip, 1)
	if got := pod.Run("cat", "/sys/class/net/eth0/mtu"); got != "1450\n" {
		l.t.Errorf("MTU %s", got)
	}
	run("DEL")
	if out := a.ctl("port"); strings.Count(out, " tap ") > 1 {
		l.t.Errorf("%s", out)
	}
}

// Two nodes with the section are a flannel network: pods that are attached over the socket reach each other, while etcd is away, after
// reloads, after kill -9, and after a lease was lost.
func TestFlannel(t *testing.T) {
	l := newFlannelLab(t, `{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan"}}`)
	a, b := l.node(1), l.node(2)
	l.attach(a)
	l.attach(b)
	reach(a, b)
	file, err := os.ReadFile(a.subnets)
	if want := fmt.Sprintf("FLANNEL_SUBNET=%v\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=false\n", netip.PrefixFrom(a.subnet.Addr().Next(), 24)); err != nil || !strings.HasSuffix(string(file), want) {
		t.Errorf("%v\n%s", err, file)
	}
	for _, want := range []string{"network", "10.3.0.0/16", a.subnet.String(), "192.0.2.1", "leases of others"} {
		if out := a.ctl("flannel"); !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	leases, err := a.c.FlannelLeases(t.Context())
	if err != nil || len(leases) != 1 || leases[0].Subnet != b.subnet.String() || leases[0].Way != "tunnel" || leases[0].PublicIPs[0] != "192.0.2.2" || len(leases[0].MACs) != 1 {
		t.Errorf("%+v, %v", leases, err)
	}

	l.cni(a, b)

	// A lease that is none is refused, and named.
	l.ctl("put", "/coreos.com/network/subnets/10.3.250.0-24", `{"PublicIP":"192.0.2.9","BackendType":"vxlan","BackendData":{"VNI":9,"VtepMAC":"02:00:00:00:00:09"}}`)
	a.Until("a lease is refused", func() bool { return strings.Contains(a.ctl("flannel leases"), "vni: 9: must be 1") })
	if f := a.wait("ready"); f.Leases != 2 || f.Refused["vni"] != 1 {
		t.Errorf("%+v", f)
	}
	l.ctl("del", "/coreos.com/network/subnets/10.3.250.0-24")

	// A reload that does not touch the section.
	since := a.wait("ready").Since
	a.writeFile(strings.Replace(flannelConfig(t), `{"vni": 200}`, `{"vni": 200}, {"vni": 300}`, 1))
	a.ctl("reload")
	if f := a.wait("ready"); !f.Since.Equal(since) {
		t.Error("another reload has restarted the section")
	}
	reach(a, b)

	// One that removes it, and returns it.
	b.writeFile(withoutFlannel(flannelConfig(t)))
	b.ctl("reload")
	if out, err := b.tryCtl("flannel"); err == nil || !strings.Contains(out, "no section flannel") {
		t.Errorf("%v %s", err, out)
	}
	if _, err := os.Stat(b.subnets); !os.IsNotExist(err) {
		t.Errorf("the subnet file: %v", err)
	}
	if _, err := a.pod.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", b.ip()); err == nil {
		t.Error("a pod is reached without the section")
	}
	if out := l.ctl("get", "--prefix", "--keys-only", "/coreos.com/network/subnets/"+b.subnet.Addr().String()); !strings.Contains(out, b.subnet.Addr().String()) {
		t.Errorf("the lease is gone: %s", out)
	}
	b.writeFile(flannelConfig(t))
	b.ctl("reload")
	if f := b.wait("ready"); f.Lease.Subnet != b.subnet.String() {
		t.Errorf("subnet %s, was %v", f.Lease.Subnet, b.subnet)
	}
	reach(a, b)

	// etcd goes and comes.
	l.kill()
	a.wait("stale")
	b.wait("stale")
	reach(a, b)

	// kill -9, and a start without etcd: the node runs, and follows as soon as it can.
	a.proc.Signal(syscall.SIGKILL)
	a.proc.Wait()
	a.run()
	if f := a.wait("starting"); f.Lease != nil {
		t.Errorf("%+v", f)
	}
	if out := a.ctl("port"); !strings.Contains(out, "pod1") {
		t.Errorf("%s", out)
	}
	l.begin()
	b.wait("ready")
	if f := a.wait("ready"); f.Lease.Subnet != a.subnet.String() {
		t.Errorf("subnet %s, was %v", f.Lease.Subnet, a.subnet)
	}
	reach(a, b)

	// A lost lease: it is said once, and got again.
	l.ctl("del", "/coreos.com/network/subnets/"+strings.Replace(b.subnet.String(), "/", "-", 1))
	if f := b.wait("lost"); f.Again == nil || !strings.Contains(f.Error, "the lease is lost") || f.Lease != nil {
		t.Errorf("%+v", f)
	}
	if f := b.wait("ready"); f.Lease.Subnet != b.subnet.String() {
		t.Errorf("subnet %s, was %v", f.Lease.Subnet, b.subnet)
	}
	reach(a, b)
	if n := strings.Count(b.proc.Output(), "the lease is lost"); n != 1 {
		t.Errorf("the loss is said %d times:\n%s", n, b.proc.Output())
	}
	for _, x := range []*flannelNode{a, b} {
		if err := x.proc.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// In mode tap the device, its routes and the rules outlive the process, and go with the section, or its mode.
func TestFlannelTAP(t *testing.T) {
	netns.Tool(t, "nft")
	l := newFlannelLab(t, `{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan"}}`)
	l.ctl("put", "/coreos.com/network/subnets/10.3.200.0-24", `{"PublicIP":"192.0.2.9","BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"02:00:00:00:00:09"}}`)
	x := l.node(1, `"pods": 200`, `"mode": "tap", "ipMasq": true`)
	has := func(when string, want bool) {
		t.Helper()
		_, link := x.Try(t.Context(), "ip", "link", "show", "flannel.1")
		_, rules := x.Try(t.Context(), "nft", "list", "table", "inet", "vxflanneld")
		_, file := os.Stat(x.subnets)
		if (link == nil) != want || (rules == nil) != want || (file == nil) != want {
			t.Errorf("%s: device: %v; rules: %v; file: %v", when, link, rules, file)
		}
		if routes := x.Run("ip", "route"); strings.Contains(routes, "10.3.200.0/24") != want {
			t.Errorf("%s: routes %s", when, routes)
		}
	}
	has("ready", true)
	x.proc.Signal(syscall.SIGKILL)
	x.proc.Wait()
	has("killed", true)
	x.run()
	if f := x.wait("ready"); f.Mode != "tap" || f.Lease.Subnet != x.subnet.String() {
		t.Errorf("%+v", f)
	}
	has("ready again", true)

	// In mode l3 none of that is of use.
	tap, err := os.ReadFile(x.file)
	must(t, err)
	x.writeFile(flannelConfig(t))
	x.ctl("reload")
	if f := x.wait("ready"); f.Mode != "l3" || f.Lease.Subnet != x.subnet.String() {
		t.Errorf("%+v", f)
	}
	if links, rules := x.Run("ip", "link"), x.Run("nft", "list", "ruleset"); strings.Contains(links, "flannel.1") || strings.Contains(rules, "vxflanneld") {
		t.Errorf("mode l3: %s\n%s", links, rules)
	}
	x.write(string(tap))
	x.ctl("reload")
	x.wait("ready")
	has("mode tap again", true)
	x.writeFile(withoutFlannel(flannelConfig(t)))
	x.ctl("reload")
	has("without the section", false)
	if err := x.proc.Stop(); err != nil {
		t.Error(err)
	}
}
