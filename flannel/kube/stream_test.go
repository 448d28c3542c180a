package kube

import (
	"context"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A snapshot that is a stream, as Kubernetes has it since 1.34 with etcd 3.5, is what a list is. No list is asked for.
func TestStream(t *testing.T) {
	l := newFake(t)
	s := &streaming{nodes: l.fake.client.nodes}
	l.fake.client.nodes, l.fake.client.streams = s, true
	follow(l)
	if s.lists.Load() != 0 || s.streams.Load() == 0 {
		t.Errorf("%d lists, %d streams", s.lists.Load(), s.streams.Load())
	}
}

// A streaming is nodes whose watches begin with what is there, if they are asked for it.
type streaming struct {
	nodes
	lists, streams atomic.Int64
}

func (s *streaming) List(ctx context.Context, o metav1.ListOptions) (*corev1.NodeList, error) {
	s.lists.Add(1)
	return s.nodes.List(ctx, o)
}

func (s *streaming) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents == nil {
		return s.nodes.Watch(ctx, o)
	}
	s.streams.Add(1)
	w, err := s.nodes.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	list, err := s.nodes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := make(chan watch.Event)
	x := &stream{Interface: w, out: out, stop: make(chan struct{})}
	send := func(e watch.Event) bool {
		select {
		case out <- e:
			return true
		case <-x.stop:
			return false
		}
	}
	go func() {
		defer close(out)
		for i := range list.Items {
			if !send(watch.Event{Type: watch.Added, Object: &list.Items[i]}) {
				return
			}
		}
		end := &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: list.ResourceVersion, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
		for ok := send(watch.Event{Type: watch.Bookmark, Object: end}); ok; {
			select {
			case <-x.stop:
				return
			case e, open := <-w.ResultChan():
				ok = open && send(e)
			}
		}
	}()
	return x, nil
}

// A stream is a watch with a beginning.
type stream struct {
	watch.Interface
	out  chan watch.Event
	stop chan struct{}
	done atomic.Bool
}

func (x *stream) ResultChan() <-chan watch.Event { return x.out }

func (x *stream) Stop() {
	if !x.done.Swap(true) {
		close(x.stop)
		x.Interface.Stop()
	}
}
