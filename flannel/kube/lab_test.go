package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/vxswitch/vxswitch/flannel/storetest"
)

// A lab is a cluster without kubelets, and what others do there. Labs on one API server have annotations of their own.
type lab struct {
	*testing.T
	nodes      objects[*corev1.Node]
	pods       objects[*corev1.Pod] // of the namespace default
	configMaps objects[*corev1.ConfigMap]

	fake   *fake        // nil with a real API server
	rest   *rest.Config // nil with the fake
	prefix string
	born   map[string]string // annotations of new nodes
}

// objects are those of a kind.
type objects[T any] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Create(ctx context.Context, x T, o metav1.CreateOptions) (T, error)
	Update(ctx context.Context, x T, o metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
	Patch(ctx context.Context, name string, t types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error)
}

// A fake is that of client-go, with the kinds that are needed.
type fake struct {
	clienttesting.Fake
	client *client
}

var labs atomic.Int64

func newLab(t *testing.T) *lab {
	return &lab{T: t, prefix: fmt.Sprintf("lab%d.example.org", labs.Add(1))}
}

func newFake(t *testing.T) *lab {
	l := newLab(t)
	f := new(fake)
	o := clienttesting.NewObjectTracker(core(), serializer.NewCodecFactory(core()).UniversalDecoder())
	f.AddReactor("*", "*", clienttesting.ObjectReaction(o))
	f.AddWatchReactor("*", func(a clienttesting.Action) (bool, watch.Interface, error) {
		w, err := o.Watch(a.GetResource(), a.GetNamespace(), a.(clienttesting.WatchActionImpl).ListOptions)
		return true, w, err
	})
	v1 := corev1.SchemeGroupVersion
	n := gentype.NewFakeClientWithList(&f.Fake, "", v1.WithResource("nodes"), v1.WithKind("Node"), func() *corev1.Node { return new(corev1.Node) },
		func() *corev1.NodeList { return new(corev1.NodeList) }, func(to, from *corev1.NodeList) { to.ListMeta = from.ListMeta },
		func(l *corev1.NodeList) []*corev1.Node { return gentype.ToPointerSlice(l.Items) }, func(l *corev1.NodeList, items []*corev1.Node) { l.Items = gentype.FromPointerSlice(items) })
	l.pods = gentype.NewFakeClient(&f.Fake, namespace, v1.WithResource("pods"), v1.WithKind("Pod"), func() *corev1.Pod { return new(corev1.Pod) })
	l.configMaps = gentype.NewFakeClient(&f.Fake, namespace, v1.WithResource("configmaps"), v1.WithKind("ConfigMap"), func() *corev1.ConfigMap { return new(corev1.ConfigMap) })
	l.nodes, l.fake = n, f
	f.client = &client{nodes: n, host: "fake", close: func() {},
		pods: func(ctx context.Context, _, name string) (*corev1.Pod, error) {
			return l.pods.Get(ctx, name, metav1.GetOptions{})
		},
		configMaps: func(ctx context.Context, _, name string) (*corev1.ConfigMap, error) {
			return l.configMaps.Get(ctx, name, metav1.GetOptions{})
		},
	}
	return l
}

const namespace = "default"

// name makes the name of a node one of the lab.
func (l *lab) name(node string) string { return node + "." + l.prefix }

// store returns the store of a node.
func (l *lab) store(node string, change ...func(c *Config)) *Store {
	l.Helper()
	cfg := &Config{Node: l.name(node), Prefix: l.prefix, REST: l.rest, Timeout: 20 * time.Second}
	for _, f := range change {
		f(cfg)
	}
	if err := cfg.Check(); err != nil {
		l.Fatal(err)
	}
	var s *Store
	if l.fake != nil {
		s = newStore(cfg, l.fake.client)
	} else {
		var err error
		if s, err = New(cfg); err != nil {
			l.Fatal(err)
		}
	}
	l.Cleanup(func() { s.Close() })
	return s
}

// node makes a node as a kubelet and kube-controller-manager do.
func (l *lab) node(node string, cidrs ...string) {
	l.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.name(node), Annotations: l.born}}
	if len(cidrs) > 0 {
		n.Spec.PodCIDR, n.Spec.PodCIDRs = cidrs[0], cidrs
	}
	if l.fake != nil { // the server does these
		n.UID, n.CreationTimestamp = types.UID(fmt.Sprint("uid-", labs.Add(1))), metav1.Now()
	}
	_, err := l.nodes.Create(l.Context(), n, metav1.CreateOptions{})
	l.ok(err)
	l.Cleanup(func() { l.nodes.Delete(context.Background(), l.name(node), metav1.DeleteOptions{}) })
}

// get reads a node.
func (l *lab) get(node string) *corev1.Node {
	l.Helper()
	n, err := l.nodes.Get(l.Context(), l.name(node), metav1.GetOptions{})
	l.ok(err)
	return n
}

// remove removes a node.
func (l *lab) remove(node string) {
	l.Helper()
	l.ok(l.nodes.Delete(l.Context(), l.name(node), metav1.DeleteOptions{}))
}

// annotate writes annotations as kubectl does: names are those behind the prefix, with a hyphen at the end to remove one.
func (l *lab) annotate(node string, pairs ...string) {
	l.Helper()
	a := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		a[l.prefix+"/"+pairs[i]] = pairs[i+1]
		if name, ok := strings.CutSuffix(pairs[i], "-"); ok {
			delete(a, l.prefix+"/"+pairs[i])
			a[l.prefix+"/"+name] = nil
		}
	}
	l.patch(node, map[string]any{"metadata": map[string]any{"annotations": a}})
}

// beat writes what a kubelet writes now and then.
func (l *lab) beat(node string) {
	l.Helper()
	l.patch(node, map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{Type: "Ready", Status: "True", LastHeartbeatTime: metav1.Now(), Message: fmt.Sprint(labs.Add(1))}}}}, "status")
}

func (l *lab) patch(node string, patch any, sub ...string) {
	l.Helper()
	b, err := json.Marshal(patch)
	l.ok(err)
	_, err = l.nodes.Patch(l.Context(), l.name(node), types.StrategicMergePatchType, b, metav1.PatchOptions{}, sub...)
	l.ok(err)
}

// annotations are those of a node, behind the prefix.
func (l *lab) annotations(node string) map[string]string {
	l.Helper()
	m := map[string]string{}
	for k, v := range l.get(node).Annotations {
		if k, ok := strings.CutPrefix(k, l.prefix+"/"); ok {
			m[k] = v
		}
	}
	return m
}

func (l *lab) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// until waits for a condition.
func (l *lab) until(what string, ok func() bool) {
	l.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	l.Fatalf("%s: not seen", what)
}

// A follower follows nodes by the names that they have in a lab.
type follower struct {
	*storetest.Follower
	l *lab
}

func (l *lab) follow(s *Store) *follower { return &follower{storetest.Follow(l, s), l} }

// want waits until these nodes have leases, and no others.
func (f *follower) want(what string, nodes ...string) {
	f.l.Helper()
	for i, n := range nodes {
		nodes[i] = f.l.name(n)
	}
	f.Want(what, nodes...)
}
