package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
)

// A follower watches a store as a node does: whenever it ends, anew.
type follower struct {
	t    tester
	stop func()

	mu        sync.Mutex
	records   map[string]flannel.Record
	changes   []flannel.Change
	snapshots int
	errs      []error
}

func (t tester) follow(s flannel.Store) *follower {
	f := &follower{t: t}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			err := s.Watch(ctx, f.take)
			f.mu.Lock()
			f.errs = append(f.errs, err)
			f.mu.Unlock()
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

func (f *follower) take(c flannel.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Snapshot {
		f.snapshots++
		f.records = map[string]flannel.Record{}
	}
	f.changes = append(f.changes, c)
	for _, r := range c.Set {
		if slices.Contains(c.Deleted, r.Key) {
			f.t.Errorf("%s is both set and deleted", r.Key)
		}
		f.records[r.Key] = r
	}
	for _, k := range c.Deleted {
		delete(f.records, k)
	}
}

// want waits until the follower has these keys.
func (f *follower) want(what string, keys ...string) {
	f.t.Helper()
	slices.Sort(keys)
	f.until(what, func() bool { return f.records != nil && slices.Equal(slices.Sorted(maps.Keys(f.records)), keys) })
}

func (f *follower) until(what string, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		f.mu.Lock()
		is := ok()
		f.mu.Unlock()
		if is {
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.t.Fatalf("%s: not seen; %v, errors %v", what, slices.Sorted(maps.Keys(f.records)), f.errs)
}

func watch(t tester) {
	t.SetNetwork(networkJSON)
	t.Put("10.3.1.0-24", value("1.1.1.1"), 0)
	f := t.follow(t.store())
	f.want("what is there", "10.3.1.0-24")
	t.Put("10.3.30.0-24", value("1.1.1.2"), 0)
	f.want("a lease more", "10.3.1.0-24", "10.3.30.0-24")
	t.Put("10.3.1.0-24", value("1.1.1.3"), 0)
	f.until("a change", func() bool { return string(f.records["10.3.1.0-24"].Value) == string(value("1.1.1.3")) })
	f.mu.Lock()
	r, n := f.records["10.3.1.0-24"], f.records["10.3.30.0-24"]
	f.mu.Unlock()
	if r.Created >= n.Created || r.Revision <= n.Revision || r.Expires || r.Ours {
		t.Errorf("%+v beside %+v", r, n)
	}
	t.Remove("10.3.1.0-24")
	f.want("one less", "10.3.30.0-24")
	t.Put("10.3.31.0-24", value("1.1.1.4"), 8*time.Second)
	f.want("one for eight seconds", "10.3.30.0-24", "10.3.31.0-24")
	f.want("without it", "10.3.30.0-24")
	f.stop()
	if f.snapshots != 1 || len(f.errs) != 1 {
		t.Errorf("%d snapshots, errors %v", f.snapshots, f.errs)
	}
}

// While the store is away, leases come and go, and what has happened is forgotten. Whoever watches sees how it has ended.
func outage(t tester) {
	t.SetNetwork(networkJSON)
	t.Put("10.3.1.0-24", value("1.1.1.1"), 0)
	t.Put("10.3.2.0-24", value("1.1.1.2"), 0)
	f := t.follow(t.store())
	f.want("what is there", "10.3.1.0-24", "10.3.2.0-24")
	for _, compact := range []bool{false, true} {
		t.Away(true)
		t.Remove("10.3.1.0-24")
		for i := range 20 {
			t.Put("10.3.2.0-24", value(fmt.Sprintf("1.1.2.%d", i)), 0)
		}
		t.Put("10.3.3.0-24", value("1.1.1.3"), 0)
		if compact {
			t.Compact()
		}
		t.Away(false)
		f.want("what is left", "10.3.2.0-24", "10.3.3.0-24")
		f.until("the last value", func() bool { return string(f.records["10.3.2.0-24"].Value) == string(value("1.1.2.19")) })
		t.Put("10.3.1.0-24", value("1.1.1.1"), 0)
		t.Remove("10.3.3.0-24")
		f.want("what comes after", "10.3.1.0-24", "10.3.2.0-24")
	}
}

// What this node has written, and nobody else's.
func ours(t tester) {
	n := t.read(networkJSON)
	s := t.store()
	f := t.follow(s)
	own := t.acquire(s, n, request("1.2.3.4"))
	key := own.Subnet.Key()
	other := t.acquire(t.store(), n, request("1.2.3.5")).Subnet.Key()
	f.want("both", key, other)
	f.until("the own one", func() bool { return f.records[key].Ours && !f.records[other].Ours })
	for range 3 {
		t.ok(s.Renew(t.Context(), own))
	}
	f.until("renewals", func() bool { return f.records[key].Revision == own.Record.Revision })
	f.mu.Lock()
	for _, c := range f.changes {
		for _, r := range c.Set {
			if r.Ours != (r.Key == key) {
				t.Errorf("%+v", r)
			}
		}
	}
	f.mu.Unlock()
	twin := t.store()
	t.acquire(twin, n, request("1.2.3.4")) // another node with the same PublicIP
	f.until("another's", func() bool { return !f.records[key].Ours })
	t.is(s.Renew(t.Context(), own), flannel.ErrLost)
}

// What is no lease is passed on, and takes its place if it can be read.
func strange(t tester) {
	n := t.read(`{"Network": "10.3.0.0/28", "Backend": {"Type": "vxlan"}}`) // .4, .8, .12
	keys := []string{"10.3.0.4-30", "10.3.0.9-30", "no subnet", "10.3.0.4-30&fc00::-64", "a/b"}
	for i, k := range keys {
		t.Put(k, []byte{0xff, byte(i + 1)}, 0)
	}
	f := t.follow(t.store())
	f.want("all", keys...)
	if own := t.acquire(t.store(), n, request("1.2.3.4")); own.Subnet != subnet("10.3.0.12-30") {
		t.Errorf("got %v", own.Subnet)
	}
}
