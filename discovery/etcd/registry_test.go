package etcd_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/discovery"
	registry "github.com/vxswitch/vxswitch/discovery/etcd"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 2 * time.Second

// A member is a VTEP that joins over a connection of its own.
type member struct {
	t     *testing.T
	proxy *etcdlab.Proxy
	end   context.CancelFunc
	ended chan error

	mu   sync.Mutex
	list []string
}

func join(t *testing.T, s *etcdlab.Server, network uint32, addr, name string) *member {
	m := &member{t: t, proxy: etcdlab.NewProxy(t, s.Addr), ended: make(chan error, 1)}
	r := check.Must(registry.New(&registry.Config{TTL: ttl, Settings: etcd.Settings{Endpoints: []string{"http://" + m.proxy.Addr}, Timeout: 2 * time.Second, KeepAlive: time.Second}}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	m.end = cancel
	go func() {
		m.ended <- r.Join(ctx, network, discovery.VTEP{Addr: netip.MustParseAddr(addr), Name: name}, m.set)
	}()
	return m
}

func (m *member) set(all []discovery.VTEP) {
	var list []string
	for _, v := range all {
		list = append(list, v.Addr.String()+" "+v.Name)
	}
	slices.Sort(list)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = list
}

// want waits until the list is another one.
func (m *member) want(what string, list ...string) {
	m.t.Helper()
	var got []string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		m.mu.Lock()
		got = m.list
		m.mu.Unlock()
		if slices.Equal(got, list) {
			return
		}
	}
	m.t.Fatalf("%s: %q, want %q", what, got, list)
}

// VTEPs of a network see each other come and go: at once those that leave, after the time to live those that die.
func TestJoin(t *testing.T) {
	s := etcdlab.Start(t, etcdlab.Options{})
	s.Ctl(t, "put", "/vxswitch/discovery/7/no address", "x")
	s.Ctl(t, "put", "/vxswitch/discovery/7/192.0.2.66", strings.Repeat("long", 9))
	a := join(t, s, 7, "192.0.2.1", "one")
	a.want("alone", "192.0.2.1 one")
	b, c := join(t, s, 7, "192.0.2.2", ""), join(t, s, 70, "192.0.2.3", "")
	a.want("two", "192.0.2.1 one", "192.0.2.2 ")
	b.want("two", "192.0.2.1 one", "192.0.2.2 ")
	c.want("another network", "192.0.2.3 ")

	b.proxy.Cut()
	if err := <-b.ended; err == nil {
		t.Error("no error without etcd")
	}
	a.want("dead", "192.0.2.1 one")
	b.proxy.Heal()
	b = join(t, s, 7, "192.0.2.2", "new")
	a.want("back", "192.0.2.1 one", "192.0.2.2 new")
	time.Sleep(2 * ttl)
	a.want("kept", "192.0.2.1 one", "192.0.2.2 new")

	b.end()
	if err := <-b.ended; err == nil {
		t.Error("the end is no error")
	}
	if keys := s.Ctl(t, "get", "--prefix", "--keys-only", "/vxswitch/discovery/7/192.0.2.2"); strings.TrimSpace(keys) != "" {
		t.Errorf("keys of a VTEP that has left: %q", keys)
	}
	a.want("left", "192.0.2.1 one")

	s.Ctl(t, "del", "/vxswitch/discovery/7/192.0.2.1")
	if err := <-a.ended; err == nil || !strings.Contains(err.Error(), "removed") {
		t.Errorf("the key was removed: %v", err)
	}
	c.end()
	<-c.ended
}

// Whoever joins again before its old key has gone, as after an etcd that was away for a moment, is listed all the time.
func TestJoinAgain(t *testing.T) {
	s := etcdlab.Start(t, etcdlab.Options{})
	a, b := join(t, s, 0, "192.0.2.1", ""), join(t, s, 0, "2001:db8::2", "")
	b.want("two", "192.0.2.1 ", "2001:db8::2 ")
	a.proxy.Cut()
	<-a.ended
	a.proxy.Heal()
	a = join(t, s, 0, "192.0.2.1", "")
	a.want("again", "192.0.2.1 ", "2001:db8::2 ")
	time.Sleep(2 * ttl)
	b.want("two", "192.0.2.1 ", "2001:db8::2 ")
	for _, m := range []*member{a, b} {
		m.end()
		<-m.ended
	}
}

func TestCheck(t *testing.T) {
	for want, c := range map[string]registry.Config{
		`Prefix: "x": must be a path`:        {Prefix: "x"},
		`Prefix: "/x/": must be a path`:      {Prefix: "/x/"},
		`TTL: 1s: must be full seconds`:      {TTL: time.Second},
		`TTL: 1h0m1s: must be full`:          {TTL: time.Hour + time.Second},
		`Endpoints: "host": must be URLs`:    {Settings: etcd.Settings{Endpoints: []string{"host"}}},
		`PasswordFile: "x": requires a user`: {Settings: etcd.Settings{PasswordFile: "x"}},
	} {
		if _, err := registry.New(&c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := registry.New(&registry.Config{Prefix: "/a/b", TTL: 2 * time.Second}); err != nil {
		t.Error(err)
	}
}
