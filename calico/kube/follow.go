package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	vxcalico "github.com/vxswitch/vxswitch/calico"
	"github.com/vxswitch/vxswitch/flannel/kube/apiserver"
)

// A Datastore is that of a cluster in Kubernetes. Make one with New.
type Datastore struct {
	cfg    Config
	absent time.Duration // before a kind that the API server does not have is asked for again
	pause  time.Duration // before a kind is listed again, of which the API server has forgotten the changes
}

var _ vxcalico.Datastore = (*Datastore)(nil)

// New checks the settings. It connects when it is used.
func New(c *Config) (*Datastore, error) {
	if c == nil {
		c = new(Config)
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	d := &Datastore{cfg: *c, absent: 30 * time.Second, pause: time.Second}
	d.cfg.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	return d, nil
}

// Follow implements [calico.Datastore]. Each kind is listed and watched by itself: what is said at first is whole when all have been listed.
// A kind of which the API server has forgotten the changes is listed again, while the others go on. Everything else is the end: the API
// server is away, or does not allow it, which the error says.
func (d *Datastore) Follow(ctx context.Context, prefixes []string, r vxcalico.Reader) error {
	server, err := apiserver.Dial(&apiserver.Config{URL: d.cfg.URL, Kubeconfig: d.cfg.Kubeconfig, REST: d.cfg.REST})
	if err != nil {
		return fmt.Errorf("kube: %w", err)
	}
	defer server.Close()
	list := chosen(prefixes)
	clients := map[schema.GroupVersion]rest.Interface{}
	for _, k := range list {
		if _, ok := clients[k.group]; ok {
			continue
		}
		_, own := k.one.(*object)
		if clients[k.group], err = server.Client(k.group, scheme(), !own); err != nil {
			return fmt.Errorf("kube: %w", err)
		}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r.Reset()
	t := &teller{ctx: ctx, end: end, r: r, prefixes: prefixes, waiting: len(list), owner: map[string]string{}, clash: map[string]error{}}
	var all sync.WaitGroup
	for _, k := range list {
		s := &sink{d: d, k: k, t: t, of: map[string]entry{}}
		all.Go(func() { end(d.wrap(server.Host, k, d.follow(ctx, clients[k.group], s))) })
	}
	all.Wait()
	return context.Cause(ctx)
}

// wrap says which kind could not be followed.
func (d *Datastore) wrap(host string, k *kind, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer from %s: %w", host, context.DeadlineExceeded)
	}
	return fmt.Errorf("kube: %s: %w", k, err)
}

// follow follows a kind until something fails.
func (d *Datastore) follow(ctx context.Context, c rest.Interface, s *sink) error {
	x := &apiserver.Source{Version: s.newest, Stream: true, Timeout: d.cfg.Timeout,
		Lister: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := s.k.list.DeepCopyObject()
			return list, many(c, s.k, o).Do(ctx).Into(list)
		},
		Begin: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			return many(c, s.k, o).Watch(ctx)
		},
	}
	for {
		err := x.Follow(ctx, s.k.one, s)
		wait := d.pause
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case apierrors.IsNotFound(err) && !s.k.needed:
			s.Replace(nil, "")
			wait = d.absent
		case apierrors.IsNotFound(err):
			return fmt.Errorf("the API server has no such kind: is this a cluster of Calico, with the API group %s? %w", calico, err)
		case errors.Is(err, apiserver.ErrEnded), apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		default:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// many asks for all objects of a kind.
func many(c rest.Interface, k *kind, o metav1.ListOptions) *rest.Request {
	var most time.Duration
	if o.TimeoutSeconds != nil {
		most = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	return c.Get().Resource(k.name).VersionedParams(&o, runtime.NewParameterCodec(scheme())).Timeout(most)
}

// A teller passes on what objects of all kinds say, one kind after the other.
type teller struct {
	ctx      context.Context
	end      func(error)
	r        vxcalico.Reader
	prefixes []string

	mu      sync.Mutex
	waiting int               // kinds that are not listed yet
	owner   map[string]string // by key: which object says it
	clash   map[string]error  // by key: which two do
}

// wanted reports whether a key begins with one of the prefixes, or is that of no resource, and only names an object.
func (t *teller) wanted(key string) bool {
	for _, p := range t.prefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return !strings.HasPrefix(key, "/calico/")
}
