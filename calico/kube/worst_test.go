package kube

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
)

// A stored is a Reader with package model's store.
type stored struct{ model.Store }

func (s *stored) Reset() { s.Store = model.Store{} }

func (s *stored) Done(context.Context) error {
	if s.Missing() {
		return errors.New("there is room again")
	}
	return nil
}

// Whoever makes objects without end fills neither the store nor what is remembered of objects. When there is room again, everything is read
// again.
func TestMany(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r := new(stored)
	k := chosen([]string{v3("ippools/")})[0]
	s := &sink{d: &Datastore{}, k: k, t: &teller{ctx: ctx, end: cancel, r: r, prefixes: prefixes(), owner: map[string]string{}, clash: map[string]error{}}, of: map[string]entry{}, listed: true}
	object := func(i int) *object {
		return &object{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}, Spec: []byte(`{"cidr":"10.65.0.0/16"}`)}
	}
	most := resource.KindPool.Most()
	for i := range 5 * most {
		s.Update(object(i))
	}
	if len(s.of) != 2*most || len(s.t.owner) != 2*most || r.Len(resource.KindPool) != most || r.Left(resource.KindPool) != most {
		t.Errorf("%d objects, %d keys; %d resources, %d left out", len(s.of), len(s.t.owner), r.Len(resource.KindPool), r.Left(resource.KindPool))
	}
	for i := range 5 * most {
		s.Delete(object(i))
	}
	if len(s.of)+len(s.t.owner) != 0 || context.Cause(ctx) == nil {
		t.Errorf("%d objects, %d keys stay; %v", len(s.of), len(s.t.owner), context.Cause(ctx))
	}
}
