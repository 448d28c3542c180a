package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/frame"
)

// cases are what a cluster and a store do together, the fake one and a real one.
var cases = []struct {
	name string
	test func(l *lab)
}{
	{"acquire", acquire}, {"both families", dual}, {"backends", backends}, {"IPv6", six}, {"a former lease", former}, {"addresses of an operator", operator}, {"wrong pod CIDRs", wrong},
	{"planes", planes}, {"renew and release", renew}, {"another node with the name", another}, {"watch", follow}, {"busy", busy}, {"available", available}, {"pod and ConfigMap", pod}, {"closed", closed},
}

func TestFake(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(newFake(t))
		})
	}
}

// TestMain is a program if the environment says so: tests start it in namespaces.
func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if status, is := program(ctx); is {
		os.Exit(status)
	}
	stop()
	goleak.VerifyTestMain(m)
}

func network(l *lab, text string) *flannel.Network {
	l.Helper()
	n, err := flannel.ParseNetwork([]byte(text))
	l.ok(err)
	return n
}

const vxlan = `{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}`

var mac = frame.MAC{2, 0, 0, 0, 0, 9}

// request is that of a node.
func request(ip string) flannel.Request {
	return flannel.Request{Attrs: flannel.Attrs{Type: "vxlan", IPv4: flannel.End{PublicIP: netip.MustParseAddr(ip), VNI: 1, MAC: mac}}}
}

func (l *lab) acquire(s *Store, n *flannel.Network, r flannel.Request) *flannel.Own {
	l.Helper()
	own, err := s.Acquire(l.Context(), n, r)
	l.ok(err)
	return own
}

// says ends the test unless a node has these annotations, and no others.
func (l *lab) says(node string, want map[string]string) {
	l.Helper()
	if got := l.annotations(node); !maps.Equal(got, want) {
		l.Fatalf("annotations %q\nwant %q", got, want)
	}
}

// The first subnet of a network is one here, and so are those of other lengths.
func acquire(l *lab) {
	n := network(l, vxlan)
	l.node("a", "10.244.0.0/25")
	s := l.store("a")
	own := l.acquire(s, n, request("192.0.2.1"))
	want := map[string]string{"kube-subnet-manager": "true", "backend-type": "vxlan", "backend-data": `{"VNI":1,"VtepMAC":"02:00:00:00:00:09"}`, "public-ip": "192.0.2.1"}
	l.says("a", want)
	if own.Subnet.Key() != "10.244.0.0-25" || own.Record.Key != l.name("a") || !own.Record.Ours || own.Record.Expires || !own.Until.IsZero() || own.IPv4.PublicIP.String() != "192.0.2.1" {
		l.Errorf("%+v", own)
	}
	version := l.get("a").ResourceVersion
	r := request("192.0.2.1")
	r.IPv4.MAC = frame.MAC{}
	if again := l.acquire(l.store("a"), n, r); again.Lease != own.Lease {
		l.Errorf("%+v, was %+v", again, own)
	}
	if got := l.get("a").ResourceVersion; got != version {
		l.Errorf("written again with nothing new: version %s, was %s", got, version)
	}
	r.IPv4.PublicIP = netip.MustParseAddr("192.0.2.2") // of the same node
	l.acquire(s, n, r)
	want["public-ip"] = "192.0.2.2"
	l.says("a", want)
	if _, err := s.Acquire(l.Context(), n, request("224.0.0.1")); err == nil {
		l.Error("a group is an address")
	}
	if _, err := l.store("b").Acquire(l.Context(), n, request("192.0.2.1")); !apierrors.IsNotFound(err) {
		l.Errorf("without a node: %v", err)
	}
}

func dual(l *lab) {
	l.node("a", "fd00:244:0:7::/64", "10.244.7.0/24")
	r := request("192.0.2.1")
	r.IPv6 = flannel.End{PublicIP: netip.MustParseAddr("2001:db8::1"), VNI: 1}
	r.OneMAC = true
	own := l.acquire(l.store("a"), network(l, `{"Network": "10.244.0.0/16", "EnableIPv6": true, "IPv6Network": "fd00:244::/48", "Backend": {"Type": "vxlan"}}`), r)
	want := map[string]string{"kube-subnet-manager": "true", "backend-type": "vxlan", "backend-data": `{"VNI":1,"VtepMAC":"02:00:00:00:00:09"}`, "public-ip": "192.0.2.1",
		"backend-v6-data": `{"VNI":1,"VtepMAC":"02:00:00:00:00:09"}`, "public-ipv6": "2001:db8::1"}
	l.says("a", want)
	if own.Subnet.Key() != "10.244.7.0-24&fd00:244:0:7::-64" {
		l.Errorf("%+v", own)
	}
	l.node("b", "fd00:244:0:8::/64", "10.244.8.0/24") // a cluster with both, a network with one
	if own := l.acquire(l.store("b"), network(l, vxlan), request("192.0.2.2")); own.Subnet.Key() != "10.244.8.0-24" {
		l.Errorf("%+v", own)
	}
	node := flannel.NodeLease{PodCIDRs: "fd00:244:0:8::/64,10.244.8.0/24", Type: "vxlan", PublicIP: "192.0.2.2", Data: `{"VNI":1,"VtepMAC":"02:00:00:00:00:09"}`}
	if lease, err := node.Lease("b"); err != nil || lease.Subnet.Key() != "10.244.8.0-24" {
		l.Errorf("%+v, %v", lease, err)
	}
}

// What flanneld writes of other backends.
func backends(l *lab) {
	for backend, want := range map[string]map[string]string{
		"host-gw": {"kube-subnet-manager": "true", "backend-type": "host-gw", "backend-data": "null", "public-ip": "192.0.2.1"},
		"ipip":    {"kube-subnet-manager": "true", "backend-type": "ipip", "backend-data": "null", "public-ip": "192.0.2.1"},
		"udp":     {"kube-subnet-manager": "true", "backend-type": "", "backend-data": "null", "public-ip": "192.0.2.1"},
	} {
		l.node(backend, "10.244.7.0/24")
		r := request("192.0.2.1")
		r.Type, r.IPv4.VNI, r.IPv4.MAC = backend, 0, frame.MAC{}
		own := l.acquire(l.store(backend), network(l, fmt.Sprintf(`{"Network": "10.244.0.0/16", "Backend": {"Type": %q}}`, backend)), r)
		if backend == "udp" {
			delete(want, "backend-type")
		}
		l.says(backend, want)
		if lease, err := own.Record.Lease(); err != nil || lease != own.Lease {
			l.Errorf("%+v, %v", lease, err)
		}
	}
}

func six(l *lab) {
	l.node("a", "fd00:244:0:7::/64")
	r := flannel.Request{Attrs: flannel.Attrs{Type: "vxlan", IPv6: flannel.End{PublicIP: netip.MustParseAddr("2001:db8::1"), VNI: 1, MAC: mac}}}
	own := l.acquire(l.store("a"), network(l, `{"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "fd00:244::/48", "Backend": {"Type": "vxlan"}}`), r)
	l.says("a", map[string]string{"kube-subnet-manager": "true", "backend-type": "vxlan", "backend-v6-data": `{"VNI":1,"VtepMAC":"02:00:00:00:00:09"}`, "public-ipv6": "2001:db8::1"})
	if lease, err := own.Record.Lease(); err != nil || lease != own.Lease {
		l.Errorf("%+v, %v", lease, err)
	}
}

// A node keeps the MAC that a flanneld has written.
func former(l *lab) {
	l.node("a", "10.244.7.0/24")
	l.annotate("a", "kube-subnet-manager", "true", "backend-type", "vxlan", "public-ip", "192.0.2.77", "backend-data", `{"VNI":1,"VtepMAC":"06:00:00:00:00:01"}`, "other", "kept")
	r := request("192.0.2.1")
	r.IPv4.MAC = frame.MAC{}
	own := l.acquire(l.store("a"), network(l, vxlan), r)
	if own.IPv4.MAC != (frame.MAC{6, 0, 0, 0, 0, 1}) {
		l.Errorf("%v", own.IPv4.MAC)
	}
	l.says("a", map[string]string{"kube-subnet-manager": "true", "backend-type": "vxlan", "backend-data": `{"VNI":1,"VtepMAC":"06:00:00:00:00:01"}`, "public-ip": "192.0.2.1", "other": "kept"})
}

func operator(l *lab) {
	l.node("a", "10.244.7.0/24")
	s := l.store("a")
	if four, six, err := s.PublicIPs(l.Context()); err != nil || four.IsValid() || six.IsValid() {
		l.Errorf("%v, %v, %v", four, six, err)
	}
	l.annotate("a", "node-public-ip", "192.0.2.7", "node-public-ipv6", "2001:db8::7", "public-ip-overwrite", "203.0.113.7")
	if four, six, err := s.PublicIPs(l.Context()); err != nil || four.String() != "192.0.2.7" || six.String() != "2001:db8::7" {
		l.Errorf("%v, %v, %v", four, six, err)
	}
	own := l.acquire(s, network(l, vxlan), request("192.0.2.1"))
	if got := l.annotations("a")["public-ip"]; got != "203.0.113.7" || own.IPv4.PublicIP.String() != "192.0.2.1" || own.Record.Node.PublicIP != got {
		l.Errorf("others are told %s; %+v", got, own)
	}
	l.ok(s.Renew(l.Context(), own))
	l.annotate("a", "node-public-ip", "x", "public-ip-overwrite", "2001:db8::7")
	if _, _, err := s.PublicIPs(l.Context()); err == nil || !strings.Contains(err.Error(), `/node-public-ip: "x": must be an IPv4 address of one host`) {
		l.Errorf("%v", err)
	}
	if _, err := s.Acquire(l.Context(), network(l, vxlan), request("192.0.2.1")); err == nil || !strings.Contains(err.Error(), `/public-ip-overwrite: "2001:db8::7": must be an IPv4 address of one host`) {
		l.Errorf("%v", err)
	}
}

func wrong(l *lab) {
	n := network(l, vxlan)
	for name, x := range map[string]struct {
		cidrs []string
		want  string
	}{
		"none":    {nil, "no-subnet: the node has no pod CIDR yet"},
		"outside": {[]string{"10.9.1.0/24"}, "pod CIDRs 10.9.1.0/24: must be in the network [10.244.0.0/16] vxlan"},
		"six":     {[]string{"fd00::/64"}, "pod CIDRs fd00::/64: must be in the network"},
	} {
		l.node(name, x.cidrs...)
		s := l.store(name)
		if own, err := s.Acquire(l.Context(), n, request("192.0.2.1")); err == nil || !strings.Contains(err.Error(), x.want) {
			l.Errorf("%s: %+v, %v", name, own, err)
		}
		if got := l.annotations(name); len(got) != 0 {
			l.Errorf("%s: %v", name, got)
		}
	}
	l.patch("none", map[string]any{"spec": map[string]any{"podCIDR": "10.244.9.0/24", "podCIDRs": []string{"10.244.9.0/24"}}})
	if own := l.acquire(l.store("none"), n, request("192.0.2.1")); own.Subnet.Key() != "10.244.9.0-24" {
		l.Errorf("%+v", own)
	}
}

// lost ends the test unless the lease is.
func (l *lab) lost(err error) {
	l.Helper()
	if !errors.Is(err, flannel.ErrLost) {
		l.Fatalf("%v, want it to wrap ErrLost", err)
	}
}

func renew(l *lab) {
	n := network(l, vxlan)
	l.node("a", "10.244.7.0/24")
	s := l.store("a")
	own := l.acquire(s, n, request("192.0.2.1"))
	l.beat("a")
	l.annotate("a", "other", "x", "public-ip-overwrite", "203.0.113.9") // for the next start
	l.ok(s.Renew(l.Context(), own))
	l.annotate("a", "public-ip", "192.0.2.9")
	l.lost(s.Renew(l.Context(), own))
	l.lost(s.Release(l.Context(), own))
	l.annotate("a", "public-ip", "192.0.2.1", "kube-subnet-manager-", "")
	l.lost(s.Renew(l.Context(), own))
	l.annotate("a", "kube-subnet-manager", "true", "public-ip-overwrite-", "")
	l.ok(s.Renew(l.Context(), own))
	l.ok(s.Release(l.Context(), own))
	l.says("a", map[string]string{"other": "x"})
	l.lost(s.Release(l.Context(), own))
	own = l.acquire(s, n, request("192.0.2.1"))
	l.remove("a")
	l.lost(s.Renew(l.Context(), own))
}

// Others write the node all the time: what is written meets what was read.
func busy(l *lab) {
	n := network(l, vxlan)
	l.node("a", "10.244.7.0/24")
	var conflicts atomic.Int64
	if l.fake != nil {
		l.fake.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
			var p struct {
				Metadata struct{ ResourceVersion *string }
			}
			if json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &p); p.Metadata.ResourceVersion == nil || conflicts.Add(1) > 3 {
				return false, nil, nil
			}
			return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), "a", errors.New("the object has been modified"))
		})
	}
	ctx, cancel := context.WithCancel(l.Context())
	var others sync.WaitGroup
	if l.fake == nil {
		others.Go(func() {
			for ctx.Err() == nil {
				l.beat("a")
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	s := l.store("a")
	for i := range 20 {
		own := l.acquire(s, n, request(fmt.Sprintf("192.0.2.%d", i+1)))
		l.ok(s.Renew(l.Context(), own))
	}
	cancel()
	others.Wait()
	if got := l.annotations("a")["public-ip"]; got != "192.0.2.20" || l.fake != nil && conflicts.Load() < 4 {
		l.Errorf("%s after %d conflicts", got, conflicts.Load())
	}
	if l.fake == nil {
		return
	}
	conflicts.Store(-1000)
	if _, err := s.Acquire(l.Context(), n, request("192.0.2.99")); !errors.Is(err, flannel.ErrTaken) {
		l.Errorf("%v, want it to wrap ErrTaken", err)
	}
}

func available(l *lab) {
	l.node("a", "10.244.7.0/24")
	l.patch("a", map[string]any{"status": map[string]any{"conditions": []map[string]string{{"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated"}, {"type": "Ready", "status": "True"}}}}, "status")
	l.ok(l.store("a").Available(l.Context()))
	conditions := l.get("a").Status.Conditions
	i := slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeNetworkUnavailable })
	if len(conditions) != 2 || i < 0 {
		l.Fatalf("%+v", conditions)
	}
	if c := conditions[i]; c.Status != corev1.ConditionFalse || c.Reason != "FlannelIsUp" || c.Message != "Flannel is running on this node" || c.LastTransitionTime.IsZero() {
		l.Errorf("%+v", c)
	}
}

// The node is that of a pod, the network that of a ConfigMap.
func pod(l *lab) {
	l.node("a", "10.244.7.0/24")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "flannel." + l.prefix, Namespace: namespace}}
	p.Spec.Containers = []corev1.Container{{Name: "flannel", Image: "flannel"}}
	p.Spec.NodeName = l.name("a")
	_, err := l.pods.Create(l.Context(), p, metav1.CreateOptions{})
	l.ok(err)
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cfg." + l.prefix, Namespace: namespace}, Data: map[string]string{"cni-conf.json": "{}"}}
	s := l.store("a", func(c *Config) {
		c.Node, c.Pod, c.ConfigMap = "", namespace+"/"+p.Name, namespace+"/"+m.Name
	})
	if _, err := s.Network(l.Context()); !errors.Is(err, flannel.ErrNoNetwork) {
		l.Errorf("without a ConfigMap: %v", err)
	}
	m, err = l.configMaps.Create(l.Context(), m, metav1.CreateOptions{})
	l.ok(err)
	if _, err := s.Network(l.Context()); !errors.Is(err, flannel.ErrNoNetwork) || !strings.Contains(err.Error(), "it has no net-conf.json") {
		l.Errorf("without the key: %v", err)
	}
	m.Data["net-conf.json"] = vxlan
	_, err = l.configMaps.Update(l.Context(), m, metav1.UpdateOptions{})
	l.ok(err)
	n, err := s.Network(l.Context())
	l.ok(err)
	if own := l.acquire(s, n, request("192.0.2.1")); own.Record.Key != l.name("a") || !own.Record.Ours {
		l.Errorf("%+v", own)
	}
	s = l.store("a", func(c *Config) { c.Node, c.Pod = "", namespace+"/none" })
	if _, _, err := s.PublicIPs(l.Context()); !apierrors.IsNotFound(err) {
		l.Errorf("without a pod: %v", err)
	}
}

func closed(l *lab) {
	l.node("a", "10.244.7.0/24")
	s := l.store("a")
	own := l.acquire(s, network(l, vxlan), request("192.0.2.1"))
	begun, ended := make(chan bool), make(chan error)
	go func() { ended <- s.Watch(l.Context(), func(flannel.Change) { close(begun) }) }()
	<-begun
	for range 2 {
		l.ok(s.Close())
	}
	for name, err := range map[string]error{"Watch": <-ended, "Watch again": s.Watch(l.Context(), func(flannel.Change) {}), "Network": func() error { _, err := s.Network(l.Context()); return err }()} {
		if !errors.Is(err, net.ErrClosed) {
			l.Errorf("%s: %v", name, err)
		}
	}
	if l.fake == nil {
		if err := s.Renew(l.Context(), own); !errors.Is(err, net.ErrClosed) {
			l.Errorf("Renew: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(l.Context())
	cancel()
	s = l.store("a")
	if err := s.Watch(ctx, func(flannel.Change) {}); !errors.Is(err, context.Canceled) {
		l.Errorf("%v", err)
	}
	if _, err := s.Network(ctx); !errors.Is(err, context.Canceled) {
		l.Errorf("%v", err)
	}
}

func TestNetworkFile(t *testing.T) {
	l := newFake(t)
	file := filepath.Join(t.TempDir(), "net-conf.json")
	s := l.store("a", func(c *Config) { c.NetworkFile = file })
	if _, err := s.Network(t.Context()); !errors.Is(err, flannel.ErrNoNetwork) || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
	l.ok(os.WriteFile(file, []byte(vxlan), 0o600))
	if n, err := s.Network(t.Context()); err != nil || n.IPv4.Network.String() != "10.244.0.0/16" {
		t.Errorf("%v, %v", n, err)
	}
}
