package kube

import (
	"context"
	"hash/maphash"
	"net"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/kube/apiserver"
)

// Watch implements [flannel.Store].
func (s *Store) Watch(ctx context.Context, f func(flannel.Change)) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(s.open, func() { end(net.ErrClosed) })()
	x := &apiserver.Source{
		Lister: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return s.client.nodes.List(ctx, o)
		},
		Begin: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return s.client.nodes.Watch(ctx, o)
		},
		Version: s.seen, Stream: s.client.streams, Timeout: s.cfg.Timeout,
	}
	return s.wrap("watch", x.Follow(ctx, new(corev1.Node), &sink{s: s, f: f, seed: maphash.MakeSeed()}))
}

// seen returns the newest version that was seen of any node.
func (s *Store) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// A sink takes what a reflector has: all nodes, and then each that changes. Most changes are those of a kubelet's status, and
// nothing to a lease.
type sink struct {
	s    *Store
	f    func(flannel.Change)
	seed maphash.Seed
	sums map[string]uint64 // of the leases, by node
}

// Transformer implements [cache.TransformingStore]: of a snapshot that is a stream, a reflector keeps no more until it has ended.
func (k *sink) Transformer() cache.TransformFunc {
	return func(x any) (any, error) {
		if n, ok := x.(*corev1.Node); ok {
			return k.s.names.strip(n), nil
		}
		return x, nil
	}
}

// Replace implements [cache.ReflectorStore].
func (k *sink) Replace(list []any, version string) error {
	k.sums = map[string]uint64{}
	c := flannel.Change{Snapshot: true}
	for _, x := range list {
		if n, ok := x.(*corev1.Node); ok {
			if l, is := k.s.names.lease(k.s.names.strip(n)); is {
				k.sums[n.Name] = k.sum(n, l)
				c.Set = append(c.Set, k.s.record(n, l))
			}
		}
	}
	k.UpdateResourceVersion(version)
	k.f(c)
	return nil
}

func (k *sink) sum(n *corev1.Node, l flannel.NodeLease) uint64 {
	return maphash.Comparable(k.seed, struct {
		flannel.NodeLease
		uid string
	}{l, string(n.UID)})
}

// Add implements [cache.ReflectorStore].
func (k *sink) Add(x any) error { return k.Update(x) }

// Update implements [cache.ReflectorStore].
func (k *sink) Update(x any) error {
	n, ok := x.(*corev1.Node)
	if !ok {
		return nil
	}
	l, is := k.s.names.lease(k.s.names.strip(n))
	if !is {
		return k.Delete(x)
	}
	sum := k.sum(n, l)
	if old, ok := k.sums[n.Name]; ok && old == sum {
		return nil
	}
	k.sums[n.Name] = sum
	k.f(flannel.Change{Set: []flannel.Record{k.s.record(n, l)}})
	return nil
}

// Delete implements [cache.ReflectorStore].
func (k *sink) Delete(x any) error {
	n, ok := x.(*corev1.Node)
	if !ok {
		return nil
	}
	if _, ok := k.sums[n.Name]; ok {
		delete(k.sums, n.Name)
		k.f(flannel.Change{Deleted: []string{n.Name}})
	}
	return nil
}

// Resync implements [cache.ReflectorStore].
func (k *sink) Resync() error { return nil }

// UpdateResourceVersion implements [cache.ResourceVersionUpdater].
func (k *sink) UpdateResourceVersion(version string) {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	k.s.version = version
}
