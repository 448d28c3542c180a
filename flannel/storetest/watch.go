package storetest

import (
	"fmt"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
)

func watch(t tester) {
	t.SetNetwork(networkJSON)
	t.Put("10.3.1.0-24", value("1.1.1.1"), 0)
	f := Follow(t, t.store())
	f.Want("what is there", "10.3.1.0-24")
	t.Put("10.3.30.0-24", value("1.1.1.2"), 0)
	f.Want("a lease more", "10.3.1.0-24", "10.3.30.0-24")
	t.Put("10.3.1.0-24", value("1.1.1.3"), 0)
	f.Until("a change", func() bool { return string(f.Records["10.3.1.0-24"].Value) == string(value("1.1.1.3")) })
	f.Mu.Lock()
	r, n := f.Records["10.3.1.0-24"], f.Records["10.3.30.0-24"]
	f.Mu.Unlock()
	if r.Created >= n.Created || r.Revision <= n.Revision || r.Expires || r.Ours {
		t.Errorf("%+v beside %+v", r, n)
	}
	t.Remove("10.3.1.0-24")
	f.Want("one less", "10.3.30.0-24")
	t.Put("10.3.31.0-24", value("1.1.1.4"), 8*time.Second)
	f.Want("one for eight seconds", "10.3.30.0-24", "10.3.31.0-24")
	f.Want("without it", "10.3.30.0-24")
	f.stop()
	if f.Snapshots != 1 || len(f.Errs) != 1 {
		t.Errorf("%d snapshots, errors %v", f.Snapshots, f.Errs)
	}
}

// While the store is away, leases come and go, and what has happened is forgotten. Whoever watches sees how it has ended.
func outage(t tester) {
	t.SetNetwork(networkJSON)
	t.Put("10.3.1.0-24", value("1.1.1.1"), 0)
	t.Put("10.3.2.0-24", value("1.1.1.2"), 0)
	f := Follow(t, t.store())
	f.Want("what is there", "10.3.1.0-24", "10.3.2.0-24")
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
		f.Want("what is left", "10.3.2.0-24", "10.3.3.0-24")
		f.Until("the last value", func() bool { return string(f.Records["10.3.2.0-24"].Value) == string(value("1.1.2.19")) })
		t.Put("10.3.1.0-24", value("1.1.1.1"), 0)
		t.Remove("10.3.3.0-24")
		f.Want("what comes after", "10.3.1.0-24", "10.3.2.0-24")
	}
}

// What this node has written, and nobody else's.
func ours(t tester) {
	n := t.read(networkJSON)
	s := t.store()
	f := Follow(t, s)
	own := t.acquire(s, n, request("1.2.3.4"))
	key := own.Subnet.Key()
	other := t.acquire(t.store(), n, request("1.2.3.5")).Subnet.Key()
	f.Want("both", key, other)
	f.Until("the own one", func() bool { return f.Records[key].Ours && !f.Records[other].Ours })
	for range 3 {
		t.ok(s.Renew(t.Context(), own))
	}
	f.Until("renewals", func() bool { return f.Records[key].Revision == own.Record.Revision })
	f.Mu.Lock()
	for _, c := range f.Changes {
		for _, r := range c.Set {
			if r.Ours != (r.Key == key) {
				t.Errorf("%+v", r)
			}
		}
	}
	f.Mu.Unlock()
	twin := t.store()
	t.acquire(twin, n, request("1.2.3.4")) // another node with the same PublicIP
	f.Until("another's", func() bool { return !f.Records[key].Ours })
	t.is(s.Renew(t.Context(), own), flannel.ErrLost)
}

// What is no lease is passed on, and takes its place if it can be read.
func strange(t tester) {
	n := t.read(`{"Network": "10.3.0.0/28", "Backend": {"Type": "vxlan"}}`) // .4, .8, .12
	keys := []string{"10.3.0.4-30", "10.3.0.9-30", "no subnet", "10.3.0.4-30&fc00::-64", "a/b"}
	for i, k := range keys {
		t.Put(k, []byte{0xff, byte(i + 1)}, 0)
	}
	f := Follow(t, t.store())
	f.Want("all", keys...)
	if own := t.acquire(t.store(), n, request("1.2.3.4")); own.Subnet != subnet("10.3.0.12-30") {
		t.Errorf("got %v", own.Subnet)
	}
}
