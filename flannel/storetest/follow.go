package storetest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
)

// A Follower watches a store as a node does: whenever it ends, anew. Mu is held to read what it has seen.
type Follower struct {
	Mu        sync.Mutex
	Records   map[string]flannel.Record
	Changes   []flannel.Change
	Snapshots int
	Errs      []error // of watches that have ended

	t    testing.TB
	stop func()
}

// Follow watches a store until the test ends.
func Follow(t testing.TB, s flannel.Store) *Follower {
	f := &Follower{t: t}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			err := s.Watch(ctx, f.take)
			f.Mu.Lock()
			f.Errs = append(f.Errs, err)
			f.Mu.Unlock()
			if err == nil {
				t.Error("Watch returned no error")
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	f.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(f.stop)
	return f
}

func (f *Follower) take(c flannel.Change) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if c.Snapshot {
		f.Snapshots++
		f.Records = map[string]flannel.Record{}
	}
	f.Changes = append(f.Changes, c)
	for _, r := range c.Set {
		if slices.Contains(c.Deleted, r.Key) {
			f.t.Errorf("%s is both set and deleted", r.Key)
		}
		f.Records[r.Key] = r
	}
	for _, k := range c.Deleted {
		delete(f.Records, k)
	}
}

// Want waits until the store has these keys, and no others.
func (f *Follower) Want(what string, keys ...string) {
	f.t.Helper()
	slices.Sort(keys)
	f.Until(what, func() bool { return f.Records != nil && slices.Equal(slices.Sorted(maps.Keys(f.Records)), keys) })
}

// Until waits until ok is true, which is called with Mu.
func (f *Follower) Until(what string, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		f.Mu.Lock()
		is := ok()
		f.Mu.Unlock()
		if is {
			return
		}
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.t.Fatalf("%s: not seen; %v, errors %v", what, slices.Sorted(maps.Keys(f.Records)), f.Errs)
}
