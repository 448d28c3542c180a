package kube

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/vxswitch/vxswitch/flannel"
)

// When the API server is away, a watch ends, and another one begins with a snapshot of what has happened.
func TestAway(t *testing.T) {
	l := newFake(t)
	n := network(l, vxlan)
	l.node("a", "10.244.7.0/24")
	l.node("b", "10.244.8.0/24")
	l.acquire(l.store("b"), n, request("192.0.2.2"))
	var away atomic.Bool
	refuse := func(clienttesting.Action) (bool, runtime.Object, error) {
		return away.Load(), nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	l.fake.PrependReactor("list", "nodes", refuse)
	s := l.store("a")
	f := l.follow(s)
	f.want("what is there", "b")
	away.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Watch(ctx, func(flannel.Change) {}); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
	away.Store(false)
	before := time.Now()
	if err := s.Watch(ctx, func(c flannel.Change) {
		if c.Snapshot && len(c.Set) == 1 {
			cancel()
		}
	}); !errors.Is(err, context.Canceled) || time.Since(before) > 20*time.Second {
		t.Errorf("%v", err)
	}
}

// A watch that cannot begin after the snapshot says why.
func TestWatchRefused(t *testing.T) {
	l := newFake(t)
	l.fake.PrependWatchReactor("nodes", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := l.store("a").Watch(ctx, func(flannel.Change) {}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v", err)
	}
}

// A write whose answer is lost is not mistaken for another's.
func TestAnswerLost(t *testing.T) {
	l := newFake(t)
	l.node("a", "10.244.7.0/24")
	s := l.store("a")
	l.fake.client.nodes = &deaf{nodes: s.client.nodes}
	if _, err := s.Acquire(t.Context(), network(l, vxlan), request("192.0.2.1")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
	f := l.follow(s)
	f.want("the own lease", "a")
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if !f.Records[l.name("a")].Ours {
		t.Error("another's")
	}
}

// A deaf hears no answers to what it writes.
type deaf struct{ nodes }

func (d *deaf) Patch(ctx context.Context, name string, p types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*corev1.Node, error) {
	if _, err := d.nodes.Patch(ctx, name, p, data, o, sub...); err != nil {
		return nil, err
	}
	return nil, context.DeadlineExceeded
}

// While the API server is away the rows stay, and what has happened meanwhile is there when it is back.
func TestStale(t *testing.T) {
	l := newFake(t)
	l.node("a", "10.244.1.0/24")
	l.node("b", "10.244.2.0/24")
	l.node("c", "10.244.3.0/24")
	l.acquire(l.store("b"), network(l, vxlan), request("192.0.2.2"))
	var away atomic.Bool
	watches := make(chan *ending, 10)
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	refuse := func(clienttesting.Action) (bool, runtime.Object, error) { return away.Load(), nil, refused }
	l.fake.PrependReactor("list", "nodes", refuse)
	l.fake.client.nodes = &cut{nodes: l.fake.client.nodes, watches: watches}
	a := l.run("a", "192.0.2.1")
	a.want("b", "10.244.2.0/24")
	away.Store(true)
	(<-watches).end()
	l.until("that it is away", func() bool { return !a.Status().Stale.IsZero() })
	a.want("what was there", "10.244.2.0/24")
	r := request("192.0.2.3")
	r.IPv4.MAC[5]++
	l.acquire(l.store("c"), network(l, vxlan), r)
	away.Store(false)
	a.want("what has happened", "10.244.2.0/24", "10.244.3.0/24")
	if s := a.Status(); !s.Stale.IsZero() || s.Snapshots != 2 {
		t.Errorf("%+v", s)
	}
}
