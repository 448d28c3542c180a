package routed_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
)

const prefix = "/coreos.com/network"

// etcdStore returns stores in an etcd, each behind a proxy of its own; the list grows.
func etcdStore(t *testing.T, s *etcdlab.Server, ttl time.Duration) (kv func() flannel.KV, proxies *[]*etcdlab.Proxy) {
	proxies = new([]*etcdlab.Proxy)
	return func() flannel.KV {
		p := etcdlab.NewProxy(t, s.Addr)
		*proxies = append(*proxies, p)
		x := check.Must(etcd.New(&etcd.Config{Endpoints: []string{"http://" + p.Addr}, TTL: ttl, Timeout: time.Second, KeepAlive: 200 * time.Millisecond}))(t)
		t.Cleanup(func() { x.Close() })
		return x
	}, proxies
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: not seen", what)
}

// Three nodes with a real etcd, which goes and comes, forgets, and is out of the reach of one of them.
func TestEtcd(t *testing.T) {
	s := etcdlab.Start(t, etcdlab.Options{})
	s.Ctl(t, "put", prefix+"/config", vxlanJSON)
	kv, proxies := etcdStore(t, s, 10*time.Second)
	f := newFabric(t, kv)
	a, b := f.join(1, nil), f.join(2, nil)
	everybody(t, 62, a, b)

	s.Stop()
	until(t, "that etcd is away", func() bool { return !a.Status().Stale.IsZero() && !b.Status().Stale.IsZero() })
	everybody(t, 62, a, b)
	s.Start()
	begun := time.Now()
	until(t, "that etcd is back", func() bool { return a.Status().Stale.IsZero() && b.Status().Stale.IsZero() })
	t.Logf("followed again %v after etcd answered", time.Since(begun).Round(time.Millisecond))
	c := f.join(3, nil)
	everybody(t, 62, a, b, c)

	(*proxies)[0].Cut()
	c.stop()
	s.Ctl(t, "del", prefix+"/subnets/"+c.Status().Own.Subnet.Key())
	s.Compact(t)
	until(t, "that one node is cut off", func() bool { return !a.Status().Stale.IsZero() && b.Status().Leases == 1 })
	(*proxies)[0].Heal()
	until(t, "that it is back", func() bool { return a.Status().Stale.IsZero() && a.Status().Leases == 1 })
	everybody(t, 62, a, b)

	time.Sleep(12 * time.Second) // longer than a lease lives
	everybody(t, 62, a, b)
	s.Ctl(t, "del", prefix+"/subnets/"+b.Status().Own.Subnet.Key())
	select {
	case err := <-b.ended:
		b.stop = func() error { return err }
		if !errors.Is(err, flannel.ErrLost) {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a node goes on without its lease")
	}
	if _, ok := a.pod.ping(b.pod.ip, 1, 300*time.Millisecond); ok {
		t.Error("a node without a lease is reached")
	}
}

// A node that is cut off from etcd for longer than its lease lives, as one that was suspended, does not take back what
// somebody else has got.
func TestTooLate(t *testing.T) {
	s := etcdlab.Start(t, etcdlab.Options{})
	s.Ctl(t, "put", prefix+"/config", `{"Network": "10.3.0.0/28", "Backend": {"Type": "vxlan"}}`) // three subnets
	kv, proxies := etcdStore(t, s, 2*time.Second)
	f := newFabric(t, kv)
	a := f.join(1, nil)
	key := a.Status().Own.Subnet.Key()
	(*proxies)[0].Silence()
	time.Sleep(4 * time.Second)
	var others []*member
	for i := range 3 {
		others = append(others, f.join(i+2, nil))
	}
	if !slices.ContainsFunc(others, func(m *member) bool { return m.Status().Own.Subnet.Key() == key }) {
		t.Fatalf("nobody has %s", key)
	}
	before := s.Ctl(t, "get", prefix+"/subnets/"+key)
	(*proxies)[0].Heal()
	select {
	case err := <-a.ended:
		a.stop = func() error { return err }
		if !errors.Is(err, flannel.ErrLost) {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a node goes on without its lease")
	}
	if after := s.Ctl(t, "get", prefix+"/subnets/"+key); after != before || after == "" {
		t.Errorf("the key is now %s, was %s", after, before)
	}
	everybody(t, 62, others...)
}
