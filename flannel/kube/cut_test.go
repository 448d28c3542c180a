package kube

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A cut is nodes whose watches can be made to end with an error.
type cut struct {
	nodes
	watches chan *ending
}

func (c *cut) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := c.nodes.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	e := &ending{Interface: w, out: make(chan watch.Event), stop: make(chan struct{}), cut: make(chan struct{})}
	go e.run()
	c.watches <- e
	return e, nil
}

// An ending is a watch.
type ending struct {
	watch.Interface
	out       chan watch.Event
	stop, cut chan struct{}
	once      sync.Once
}

// end has the watch tell that what it would say next is forgotten.
func (e *ending) end() { close(e.cut) }

func (e *ending) ResultChan() <-chan watch.Event { return e.out }

func (e *ending) Stop() {
	e.once.Do(func() { close(e.stop) })
	e.Interface.Stop()
}

func (e *ending) run() {
	defer close(e.out)
	from := e.Interface.ResultChan()
	for {
		var x watch.Event
		select {
		case <-e.stop:
			return
		case <-e.cut:
			x = watch.Event{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old resource version"}}
		case y, ok := <-from:
			if !ok {
				return
			}
			x = y
		}
		select {
		case e.out <- x:
		case <-e.stop:
			return
		}
		if x.Type == watch.Error {
			return
		}
	}
}
