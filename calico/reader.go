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

// A change is one of a key.
type change struct {
	key   string
	value []byte
	err   error // it has no value because of this
	gone  bool
}

func (c *change) on(s *model.Store) {
	switch {
	case c.gone:
		s.Delete(c.key)
	case c.err != nil:
		s.Wrong(c.key, c.err)
	default:
		s.Put(c.key, c.value)
	}
}

func (r *reader) Reset() { r.all, r.changes = new(model.Store), nil }

func (r *reader) Put(key string, value []byte) { r.change(change{key: key, value: value}) }
func (r *reader) Wrong(key string, err error)  { r.change(change{key: key, err: err}) }
func (r *reader) Delete(key string)            { r.change(change{key: key, gone: true}) }

func (r *reader) change(c change) {
	if r.all != nil {
		c.on(r.all)
		return
	}
	r.changes = append(r.changes, c)
}

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
		k, err := resource.ParseKey(c.key)
		ofPolicy := err == nil && k.Kind.OfPolicy()
		if ofPolicy || k.Kind == resource.KindFelix || k == (resource.Key{Kind: resource.KindNode, Name: p.cfg.Node}) { // whose labels these choose
			p.policies.Store(true)
		}
		if !ofPolicy {
			p.routes.Store(true)
		}
		c.on(p.store)
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
