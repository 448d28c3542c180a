package apiserver

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// ErrEnded is why a watch has ended that had begun, such as one of which the API server has forgotten the changes since.
var ErrEnded = errors.New("it has ended")

// A Source is the objects of one kind.
type Source struct {
	Lister func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)
	Begin  func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)

	Version func() string // the newest version that was seen, "" for none: no list is older
	Stream  bool          // a snapshot can be one
	Timeout time.Duration // of the start of a watch; a list may take six times as long
}

// listTime is how many times longer than another call a list of all objects may take.
const listTime = 6

// Follow has a reflector of client-go list the objects, which are of the type of one, and follow them. Watches that end as they
// should, after some minutes, it begins again where they were. With everything else Follow ends, so that its caller knows that the API
// server is away.
func (s *Source) Follow(ctx context.Context, one runtime.Object, to cache.ReflectorStore) error {
	ctx, end := context.WithCancelCause(klog.NewContext(ctx, klog.Logger{}))
	defer end(nil)
	r := cache.NewReflectorWithOptions(&lister{s, end}, one, to, cache.ReflectorOptions{Name: "kube", Logger: new(klog.Logger)})
	err := r.ListAndWatchWithContext(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err == nil {
		err = ErrEnded
	}
	return err
}

// A lister is where a reflector has its objects from.
type lister struct {
	*Source
	end func(error)
}

// IsWatchListSemanticsUnSupported reports whether a snapshot cannot be a stream: client-go's fake has none.
func (x *lister) IsWatchListSemanticsUnSupported() bool { return !x.Stream }

// ListWithContext lists the objects. Where a reflector would take a list of any age, it is no older than what was seen before.
func (x *lister) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.ResourceVersion == "0" {
		if o.ResourceVersion = x.Version(); o.ResourceVersion != "" {
			o.Limit = 0 // from the API server's memory, not from etcd
		}
	}
	ctx, cancel := context.WithTimeout(ctx, listTime*x.Timeout)
	defer cancel()
	return x.Lister(ctx, o)
}

// WatchWithContext begins a watch. A reflector would try again after some errors, and tell nobody: all are the end, but that an API server
// makes no streams of snapshots, as those before Kubernetes 1.34 may not, after which a reflector asks for a list.
func (x *lister) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(x.Timeout, func() { cancel(context.DeadlineExceeded) })
	w, err := x.Begin(ctx, o)
	if !late.Stop() && err == nil {
		w.Stop()
		err = context.DeadlineExceeded
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		if o.SendInitialEvents == nil || !apierrors.IsInvalid(err) {
			x.end(err)
		}
		return nil, ErrEnded
	}
	return &begun{w, cancel}, nil
}

// List implements [cache.ListerWatcher].
func (x *lister) List(o metav1.ListOptions) (runtime.Object, error) {
	return x.ListWithContext(context.Background(), o)
}

// Watch implements [cache.ListerWatcher].
func (x *lister) Watch(o metav1.ListOptions) (watch.Interface, error) {
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
