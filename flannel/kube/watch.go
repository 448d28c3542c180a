package kube

import (
	"context"
	"errors"
	"hash/maphash"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/vxswitch/vxswitch/flannel"
)

var errWatchEnded = errors.New("it has ended")

// Watch implements [flannel.Store]. A reflector of client-go lists the nodes and follows them; watches that end as they should, after
// some minutes, it begins again where they were. With everything else Watch ends, so that its caller knows that the API server is away.
func (s *Store) Watch(ctx context.Context, f func(flannel.Change)) error {
	ctx, end := context.WithCancelCause(klog.NewContext(ctx, klog.Logger{}))
	defer end(nil)
	defer context.AfterFunc(s.open, func() { end(net.ErrClosed) })()
	r := cache.NewReflectorWithOptions(&source{s, end}, &corev1.Node{}, &sink{s: s, f: f, seed: maphash.MakeSeed()}, cache.ReflectorOptions{Name: "kube", Logger: new(klog.Logger)})
	err := r.ListAndWatchWithContext(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err == nil {
		err = errWatchEnded
	}
	return s.wrap("watch", err)
}

// listTime is how many times longer than another call a list of all nodes may take.
const listTime = 6

// A source is where a reflector has its nodes from.
type source struct {
	s   *Store
	end func(error)
}

// IsWatchListSemanticsUnSupported reports whether a snapshot cannot be a stream: client-go's fake has none.
func (x *source) IsWatchListSemanticsUnSupported() bool { return !x.s.client.streams }

// ListWithContext lists the nodes. Where a reflector would take a list of any age, it is no older than what was seen before.
func (x *source) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.ResourceVersion == "0" {
		x.s.mu.Lock()
		o.ResourceVersion = x.s.version
		x.s.mu.Unlock()
		if o.ResourceVersion != "" {
			o.Limit = 0 // from the API server's memory, not from etcd
		}
	}
	ctx, cancel := context.WithTimeout(ctx, listTime*x.s.cfg.Timeout)
	defer cancel()
	return x.s.client.nodes.List(ctx, o)
}

// WatchWithContext begins a watch. A reflector would try again after some errors, and tell nobody: all are the end.
func (x *source) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(x.s.cfg.Timeout, func() { cancel(context.DeadlineExceeded) })
	w, err := x.s.client.nodes.Watch(ctx, o)
	if !late.Stop() && err == nil {
		w.Stop()
		err = context.DeadlineExceeded
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		x.end(err)
		return nil, errWatchEnded
	}
	return &begun{w, cancel}, nil
}

// List implements [cache.ListerWatcher].
func (x *source) List(o metav1.ListOptions) (runtime.Object, error) {
	return x.ListWithContext(context.Background(), o)
}

// Watch implements [cache.ListerWatcher].
func (x *source) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return x.WatchWithContext(context.Background(), o)
}

// A begun is a watch with its context.
type begun struct {
	watch.Interface
	cancel context.CancelCauseFunc
}

// Stop implements [watch.Interface].
func (b *begun) Stop() {
	b.Interface.Stop()
	b.cancel(nil)
}

// A sink takes what a reflector has: all nodes, and then each that changes. Most changes are those of a kubelet's status, and
// nothing to a lease.
type sink struct {
	s    *Store
	f    func(flannel.Change)
	seed maphash.Seed
	sums map[string]uint64 // of the leases, by node
}

// Transformer implements [cache.TransformingStore].
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
