package flannel

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// A floodStore is a store whose changes never end, and are more than a node can look at.
type floodStore struct{ Store }

func (s *floodStore) Watch(ctx context.Context, f func(Change)) error {
	var changes [2]Change // that undo each other
	for i := range changes {
		for j := range 1000 {
			key := fmt.Sprintf("10.3.%d.%d-30", 200+j>>6, j&63<<2) // the own one is among the first hundred
			changes[i].Set = append(changes[i].Set, record(key, 1, vxlan(fmt.Sprint("198.51.100.", 1+i), 1000+j)))
		}
	}
	records, err := s.Store.(*Registry).KV.List(ctx)
	if err != nil {
		return err
	}
	f(Change{Snapshot: true, Set: records})
	for i := 0; ctx.Err() == nil; i++ {
		f(changes[i%2])
	}
	return ctx.Err()
}

// However fast leases change, what has changed is passed on, the plane says what it does, and its lease is renewed.
func TestPlaneFlood(t *testing.T) {
	m := NewMemory(oneNetwork)
	m.TTL = 15 * time.Second
	defer m.Close()
	s := run(t, m, "192.0.2.1", func(c *PlaneConfig) {
		c.Store, c.Shape = &floodStore{c.Store}, &quickShape{newFakeShape()}
	})
	defer s.stop()
	renewed := make(chan bool)
	go func() {
		defer close(renewed)
		<-s.Ready()
		for first := s.Status().Renewed; !s.Status().Renewed.After(first); time.Sleep(time.Millisecond) {
			if s.Status().Phase != Following {
				t.Errorf("%+v", s.Status())
				return
			}
		}
	}()
	select {
	case <-renewed:
		if n := s.Status().Leases; n < 1000 {
			t.Errorf("%d leases", n)
		}
	case <-time.After(time.Minute):
		t.Error("not renewed in a minute")
		s.stop()
		<-renewed
	}
}

// A hiccup is a KV whose next Update fails.
type hiccup struct {
	KV
	fail atomic.Bool
}

func (k *hiccup) Update(ctx context.Context, r Record, value []byte) (Record, error) {
	if k.fail.Swap(false) {
		return Record{}, errors.New("hiccup")
	}
	return k.KV.Update(ctx, r, value)
}

// The error of a renewal is shown until one succeeds.
func TestRenewalError(t *testing.T) {
	bubble(t, oneNetwork, func(t *testing.T, m *Memory) {
		k := &hiccup{KV: m.KV()}
		s := run(t, m, "192.0.2.1", func(c *PlaneConfig) { c.Store = &Registry{KV: k} })
		s.subnet()
		k.fail.Store(true)
		time.Sleep(23*time.Hour + time.Second)
		if st := s.Status(); st.LastError != "hiccup" {
			t.Errorf("%+v", st)
		}
		time.Sleep(2 * time.Minute)
		if st := s.Status(); st.LastError != "" || time.Until(st.Until) < 23*time.Hour {
			t.Errorf("renewed, and %+v", st)
		}
		s.stop()
	})
}
