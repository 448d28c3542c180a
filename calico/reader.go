package calico

import (
	"context"
	"errors"
	"time"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
)

// errAgain ends a watch so that everything is read again: there is room for what was left out.
var errAgain = errors.New("everything is read again")

// A reader reads the datastore for a Plane, which hears of it when it is whole.
type reader struct {
	p       *Plane
	all     *model.Store // being read, nil while changes come
	changes []change
}

// A change is one of a key; without a value it is gone.
type change struct {
	key   string
	value []byte
	gone  bool
}

func (r *reader) Reset() { r.all, r.changes = new(model.Store), nil }

func (r *reader) Put(key string, value []byte) {
	if r.all != nil {
		r.all.Put(key, value)
		return
	}
	r.changes = append(r.changes, change{key: key, value: value})
}

func (r *reader) Delete(key string) { r.changes = append(r.changes, change{key: key, gone: true}) }

func (r *reader) Done(context.Context) error {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.all != nil {
		p.store, r.all = r.all, nil
		p.routes.Store(true)
		p.policies.Store(true)
	}
	for _, c := range r.changes {
		if k, err := resource.ParseKey(c.key); err == nil && k.Kind.OfPolicy() {
			p.policies.Store(true)
		} else {
			p.routes.Store(true)
		}
		if c.gone {
			p.store.Delete(c.key)
		} else {
			p.store.Put(c.key, c.value)
		}
	}
	r.changes = nil
	if !p.stale.IsZero() {
		p.stale, p.lastErr = time.Time{}, ""
		p.log.Info("the datastore is followed")
	}
	p.loop.Wake()
	if p.store.Missing() {
		return errAgain
	}
	return nil
}
