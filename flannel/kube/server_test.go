package kube

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
	"github.com/vxswitch/vxswitch/internal/lab/kubelab"
)

// paths are where objects of a manifest are created.
var paths = map[string]string{
	"Namespace": "/api/v1/namespaces", "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles", "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
	"ServiceAccount": "/api/v1/namespaces/kube-flannel/serviceaccounts", "ConfigMap": "/api/v1/namespaces/kube-flannel/configmaps", "DaemonSet": "/apis/apps/v1/namespaces/kube-flannel/daemonsets",
}

// apply creates the objects of a manifest.
func apply(t *testing.T, s *kubelab.Server, manifest string) {
	t.Helper()
	for doc := range strings.SplitSeq(manifest, "\n---\n") {
		b, err := yaml.YAMLToJSON([]byte(doc))
		check.OK(t, err)
		var x struct{ Kind string }
		if err := json.Unmarshal(b, &x); err != nil || paths[x.Kind] == "" {
			t.Fatalf("%q, %v: %s", x.Kind, err, doc)
		}
		s.Create(paths[x.Kind], b)
	}
}

// configMaps lets flannel read them: the manifest mounts the only one.
const configMaps = `{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "flannel-configmaps"},
	"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}
---
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "flannel-configmaps"},
	"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "flannel-configmaps"},
	"subjects": [{"kind": "ServiceAccount", "name": "flannel", "namespace": "kube-flannel"}]}`

func restConfig(addr, token string) *rest.Config {
	return &rest.Config{Host: "https://" + addr, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}
}

// newServer returns a lab with a real API server, whose stores have the permissions of the manifest.
func newServer(t *testing.T, s *kubelab.Server) *lab {
	t.Helper()
	l := newLab(t)
	l.rest = restConfig(s.Addr, kubelab.Flannel)
	admin, err := dial(&Config{REST: restConfig(s.Addr, kubelab.Admin)})
	l.ok(err)
	t.Cleanup(admin.client().close)
	l.nodes = gentype.NewClientWithList("nodes", admin.Interface, admin.params, "", func() *corev1.Node { return new(corev1.Node) }, func() *corev1.NodeList { return new(corev1.NodeList) })
	l.pods = gentype.NewClient("pods", admin.Interface, admin.params, namespace, func() *corev1.Pod { return new(corev1.Pod) })
	l.configMaps = gentype.NewClient("configmaps", admin.Interface, admin.params, namespace, func() *corev1.ConfigMap { return new(corev1.ConfigMap) })
	return l
}

// The real kube-apiserver does what the fake one does, with the permissions of the manifest.
func TestServer(t *testing.T) {
	s := kubelab.Start(t)
	manifest := check.Must(os.ReadFile("vxflanneld.yaml"))(t)
	apply(t, s, string(manifest))
	apply(t, s, configMaps)
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.test(newServer(t, s))
			})
		}
	})
	t.Run("restart", func(t *testing.T) { restart(newServer(t, s), s) })
	t.Run("silence", func(t *testing.T) { silence(newServer(t, s), s) })
}

// While the API server is away the rows stay; when it is back, what has happened is there.
func restart(l *lab, s *kubelab.Server) {
	l.node("a", "10.244.1.0/24")
	l.node("b", "10.244.2.0/24")
	l.node("c", "10.244.3.0/24")
	l.acquire(l.store("b"), network(l, vxlan), request("192.0.2.2"))
	a := l.run("a", "192.0.2.1")
	a.want("b", "10.244.2.0/24")
	s.Stop()
	l.until("that it is away", func() bool { return !a.Status().Stale.IsZero() })
	a.want("what was there", "10.244.2.0/24")
	s.Start()
	r := request("192.0.2.3")
	r.IPv4.MAC[5]++
	l.acquire(l.store("c"), network(l, vxlan), r)
	a.want("what has happened", "10.244.2.0/24", "10.244.3.0/24")
	l.until("that it is back", func() bool { return a.Status().Stale.IsZero() })
}

// A call and the start of a watch end after Config.Timeout when nothing answers.
func silence(l *lab, s *kubelab.Server) {
	proxy := etcdlab.NewProxy(l.T, s.Addr)
	l.node("a", "10.244.1.0/24")
	x := l.store("a", func(c *Config) {
		c.REST, c.Timeout = restConfig(proxy.Addr, kubelab.Flannel), time.Second
	})
	l.acquire(x, network(l, vxlan), request("192.0.2.1"))
	proxy.Silence()
	for name, call := range map[string]func() error{
		"PublicIPs": func() error { _, _, err := x.PublicIPs(l.Context()); return err },
		"Watch":     func() error { return x.Watch(l.Context(), func(flannel.Change) {}) },
	} {
		begun := time.Now()
		if err := call(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer from https://"+proxy.Addr) || time.Since(begun) > 20*time.Second {
			l.Errorf("%s: %v after %v", name, err, time.Since(begun))
		}
	}
	proxy.Heal()
	x.client.close()
	l.until("that it is back", func() bool { _, _, err := x.PublicIPs(l.Context()); return err == nil })
}
