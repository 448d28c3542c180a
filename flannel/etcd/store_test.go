package etcd_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/flannel/storetest"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shared is an etcd for tests that do not stop it. Each has a prefix of its own.
var shared struct {
	sync.Mutex
	prefixes int
}

func prefix() string {
	shared.Lock()
	defer shared.Unlock()
	shared.prefixes++
	return fmt.Sprintf("/lab/%d", shared.prefixes)
}

// A lab is a prefix in an etcd, and what strangers do there.
type lab struct {
	t      *testing.T
	server *etcdlab.Server
	proxy  *etcdlab.Proxy
	prefix string
	cfg    etcd.Config // for stores
}

func newLab(t *testing.T, s *etcdlab.Server) *lab {
	l := &lab{t: t, server: s, proxy: etcdlab.NewProxy(t, s.Addr), prefix: prefix()}
	scheme, _, _ := strings.Cut(s.URL, "://")
	l.cfg = etcd.Config{Endpoints: []string{scheme + "://" + l.proxy.Addr}, Prefix: l.prefix, TTL: 10 * time.Second, Timeout: 5 * time.Second, KeepAlive: time.Second}
	return l
}

func (l *lab) store() *etcd.Store {
	l.t.Helper()
	s := check.Must(etcd.New(&l.cfg))(l.t)
	l.t.Cleanup(func() { s.Close() })
	return s
}

func (l *lab) key(k string) string { return l.prefix + "/subnets/" + k }

func (l *lab) setNetwork(json string) { l.server.Ctl(l.t, "put", l.prefix+"/config", json) }

func (l *lab) put(key string, value []byte, d time.Duration) {
	l.t.Helper()
	args := []string{"put", "--", l.key(key), string(value)}
	if d > 0 {
		words := strings.Fields(l.server.Ctl(l.t, "lease", "grant", strconv.Itoa(int(d/time.Second)))) // lease ID granted with TTL(2s)
		args = append([]string{"put", "--lease=" + words[1]}, args[1:]...)
	}
	l.server.Ctl(l.t, args...)
}

func (l *lab) remove(key string) { l.server.Ctl(l.t, "del", "--", l.key(key)) }

func (l *lab) away(is bool) {
	if is {
		l.proxy.Cut()
	} else {
		l.proxy.Heal()
	}
}

func TestStore(t *testing.T) {
	s := etcdlab.Start(t, etcdlab.Options{})
	t.Run("etcd", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Fixture {
			t.Parallel()
			l := newLab(t, s)
			return storetest.Fixture{
				KV: func() flannel.KV { return l.store() }, SetNetwork: l.setNetwork, Put: l.put, Remove: l.remove, Compact: func() { s.Compact(t) }, Away: l.away,
			}
		})
	})
}
