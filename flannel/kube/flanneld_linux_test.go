package kube

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/daemon"
	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
	"github.com/vxswitch/vxswitch/internal/lab/kubelab"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// program is vxflanneld, if the environment asks for it.
func program(ctx context.Context) (status int, is bool) {
	if os.Getenv("VXFLANNELD_TEST") == "" {
		return 0, false
	}
	return daemon.Main(ctx, os.Args[1:], os.Environ(), &daemon.Program{Stdout: os.Stdout, Stderr: os.Stderr, Cluster: func(c *daemon.Cluster) (daemon.ClusterStore, error) {
		return New(&Config{URL: c.URL, Kubeconfig: c.Kubeconfig, Node: c.Node, Pod: c.Pod, Prefix: c.Prefix, NetworkFile: c.NetworkFile})
	}}), true
}

// A cluster is hosts on a link, each with a way to the API server.
type cluster struct {
	*lab
	net     *flanneldlab.Lab
	server  *kubelab.Server
	network string // a file
	exe     string
	configs map[int]string // of the API server, by host
}

// args are those that flanneld and vxflanneld have in common.
func (c *cluster) args(h *netns.Host, i int) (env, args []string) {
	if c.configs[i] == "" {
		c.configs[i] = c.server.Kubeconfig(etcdlab.ProxyIn(c.T, c.server.Addr, "127.0.0.1", h.Do).Addr, kubelab.Flannel)
	}
	return []string{"NODE_NAME=" + c.name(fmt.Sprint("n", i))}, []string{"-kube-subnet-mgr", "-kubeconfig-file", c.configs[i], "-kube-annotation-prefix", c.prefix, "-net-config-path", c.network}
}

// theirs runs flanneld in a host.
func (c *cluster) theirs(h *netns.Host, i int) *flanneldlab.Node {
	c.Helper()
	env, args := c.args(h, i)
	return flanneldlab.Run(c.T, h, env, args...)
}

// ours runs vxflanneld in a host.
func (c *cluster) ours(h *netns.Host, i int) *netns.Proc {
	c.Helper()
	env, args := c.args(h, i)
	p := h.Start("env", slices.Concat(env, []string{"VXFLANNELD_TEST=1", c.exe, "-iface", "eth0", "-v", "1", "-subnet-file", c.file(i)}, args)...)
	p.Want("ready subnet=")
	return p
}

func (c *cluster) file(i int) string {
	return filepath.Join(filepath.Dir(c.network), fmt.Sprint("subnet", i))
}

func (c *cluster) subnet(i int) flannel.Subnet {
	c.Helper()
	b, err := os.ReadFile(c.file(i))
	c.ok(err)
	return flannel.PreviousSubnet(b)
}

func reach(from *netns.Host, to string) {
	from.Until(to+" answers", func() bool {
		_, err := from.Try(context.Background(), "ping", "-n", "-c", "1", "-W", "1", to)
		return err == nil
	})
}

// initCommand is that of the DaemonSet's initContainer.
func initCommand(t *testing.T, manifest string) []string {
	t.Helper()
	var x struct {
		Spec struct {
			Template struct {
				Spec struct{ InitContainers []struct{ Command []string } }
			}
		}
	}
	docs := strings.Split(manifest, "\n---\n")
	if err := yaml.Unmarshal([]byte(docs[len(docs)-1]), &x); err != nil || len(x.Spec.Template.Spec.InitContainers) != 1 {
		t.Fatalf("%v: %+v", err, x)
	}
	return x.Spec.Template.Spec.InitContainers[0].Command
}

// Real flanneld with -kube-subnet-mgr and vxflanneld are one network: they say the same of themselves, pods reach each other in both
// families, and a node goes from one to the other with its subnet and its MAC.
func TestFlanneld(t *testing.T) {
	kubelab.Path(t)
	l := flanneldlab.New(t, `{}`)
	s := kubelab.Start(t)
	manifest, err := os.ReadFile("vxflanneld.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, s, string(manifest))
	c := &cluster{lab: newServer(t, s), net: l, server: s, network: filepath.Join(t.TempDir(), "net-conf.json"), configs: map[int]string{}}
	c.born = map[string]string{"node.alpha.kubernetes.io/ttl": "0"} // as kube-controller-manager does; without any, flanneld panics
	c.exe, err = os.Executable()
	c.ok(err)
	c.ok(os.WriteFile(c.network, []byte(`{"Network": "10.244.0.0/16", "EnableIPv6": true, "IPv6Network": "fd00:244::/48", "EnableNFTables": true, "Backend": {"Type": "vxlan"}}`), 0o600))
	for i := range 4 {
		c.node(fmt.Sprint("n", i), fmt.Sprintf("10.244.%d.0/24", i), fmt.Sprintf("fd00:244:0:%d::/64", i))
	}
	n0, n1, n2, n3 := l.Host(10), l.Host(11), l.Host(12), l.Host(13)
	a := c.theirs(n1, 1)
	c.ours(n0, 0) // the first subnet of the network
	b := c.ours(n2, 2)
	podA := l.Pod(n1, 11, a.Subnets(t)...)
	pod0, podB := l.Pod(n0, 10, c.subnet(0).IPv4, c.subnet(0).IPv6), l.Pod(n2, 12, c.subnet(2).IPv4, c.subnet(2).IPv6)
	for _, x := range []struct{ from, to *flanneldlab.Pod }{{podA, podB}, {podB, podA}, {podA, pod0}, {pod0, podB}} {
		reach(x.from.Host, x.to.IPv4.String())
		reach(x.from.Host, x.to.IPv6.String())
	}
	if ttl := podA.PingTTL(podB.IPv4.String()); ttl != 62 {
		t.Errorf("TTL %d", ttl)
	}

	theirs, ours := c.annotations("n1"), c.annotations("n2")
	if !slices.Equal(slices.Sorted(maps.Keys(theirs)), slices.Sorted(maps.Keys(ours))) {
		t.Errorf("annotations of flanneld %q, ours %q", theirs, ours)
	}
	for _, m := range []map[string]string{theirs, ours} {
		t.Logf("%q", m)
	}
	for name, v := range theirs {
		if want := strings.NewReplacer("192.0.2.11", "192.0.2.12", "2001:db8::11", "2001:db8::12").Replace(v); !strings.Contains(name, "data") && ours[name] != want {
			t.Errorf("%s: %q, want %q", name, ours[name], want)
		}
	}
	conditions := map[string]string{}
	for _, n := range []string{"n1", "n2"} {
		c.until(n+" is available", func() bool {
			for _, x := range c.get(n).Status.Conditions {
				if x.Type == corev1.NodeNetworkUnavailable {
					conditions[n] = fmt.Sprint(x.Status, x.Reason, x.Message)
				}
			}
			return conditions[n] != ""
		})
	}
	if conditions["n1"] != conditions["n2"] {
		t.Errorf("conditions %q", conditions)
	}

	b.Stop()
	c.ours(n2, 2) // a restart
	if again := c.annotations("n2"); !maps.Equal(again, ours) {
		t.Errorf("annotations after a restart %q, were %q", again, ours)
	}
	reach(podA.Host, podB.IPv4.String())

	d := c.theirs(n3, 3)
	podD := l.Pod(n3, 13, d.Subnets(t)...)
	reach(podB.Host, podD.IPv6.String())
	said := c.annotations("n3")
	d.Stop()
	prepare := initCommand(t, string(manifest))
	n3.Run(prepare[0], prepare[1:]...)
	e := c.ours(n3, 3) // from one to the other
	n3.Run(prepare[0], prepare[1:]...)
	n3.IP("link", "show", "flannel.1") // ours stays
	now := c.annotations("n3")
	if now["backend-data"] != said["backend-data"] || now["public-ip"] != said["public-ip"] {
		t.Errorf("annotations %q, were %q", now, said)
	}
	reach(podA.Host, podD.IPv4.String())
	reach(podB.Host, podD.IPv6.String())

	c.remove("n1") // theirs goes, and with it what leads there
	for _, h := range []*netns.Host{n2, n3} {
		h.Until("no route to n1", func() bool { return !strings.Contains(h.IP("route"), "10.244.1.0/24") })
	}
	c.annotate("n3", "backend-data", `{"VNI":1,"VtepMAC":"02:00:00:00:00:77"}`)
	e.Want("the lease is lost")
	if err := e.Wait(); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("%v", err)
	}
}
