package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Section discovery with etcd in place of servers: nodes find each other and each other's hosts, while etcd is away the last list holds,
// and a node that leaves is no neighbour any more.
func TestDiscoveryEtcd(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw := n.Switch("sw")
	etcd := newEtcdHost(t, n, sw)
	keys := filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(keys, []byte("1 a key for tests only\n"), 0o600))
	file := func(i int, prefix string) string {
		return fmt.Sprintf(`{"tunnels": [{"name": "vx", "local": "192.0.2.%d", "peers": "listed-per-vni"}], "ports": [{"name": "p%[1]d", "mtu": 1450}],
  "segments": [{"vni": 10, "tunnels": [{"tunnel": "vx", "noLearning": true}], "members": [{"port": "p%[1]d"}]}],
  "discovery": {"tunnel": "vx", "local": "192.0.2.%[1]d", "name": "n%[1]d", "keyFile": %q, "etcd": {"endpoints": ["http://192.0.2.100:2379"], "prefix": %q, "ttl": "5s", "timeout": "2s", "keepAlive": "1s"}},
  "control": {"socket": "SOCKET"}}`, i, keys, prefix)
	}
	var nodes [3]*system
	for i := 1; i < 3; i++ {
		s := newSystem(t, n, fmt.Sprint("n", i))
		n.Plug(s.Host, fmt.Sprintf("192.0.2.%d/24", i), sw)
		s.write(file(i, "/lab"))
		s.run()
		nodes[i] = s
	}
	one, two := nodes[1], nodes[2]
	c := api.NewClient(one.socket)
	state := func(what string, ok func(d api.Discovery) bool) {
		t.Helper()
		one.Until(what, func() bool {
			d, err := c.Discovery(t.Context())
			return err == nil && d.Registry != nil && ok(d)
		})
	}
	state("a neighbour", func(d api.Discovery) bool { return d.Registry.Up && d.Registry.VTEPs == 2 && d.Up == 1 })
	if got := etcd.ctl("get", "--prefix", "--keys-only", "/lab/"); strings.Join(strings.Fields(got), " ") != "/lab/0/192.0.2.1 /lab/0/192.0.2.2" {
		t.Errorf("keys %q", got)
	}
	if got := one.ctl("discovery neighbours"); !strings.Contains(got, "192.0.2.2  n2    up") {
		t.Error(got)
	}
	for i, s := range []*system{one, two} {
		s.Addr(fmt.Sprint("p", i+1), fmt.Sprintf("10.0.0.%d/24", i+1))
	}
	one.Ping("10.0.0.2", 1)

	etcd.kill()
	state("etcd is away", func(d api.Discovery) bool {
		return !d.Registry.Up && d.Registry.VTEPs == 2 && d.Registry.Error != "" && d.Up == 1
	})
	if got := one.ctl("discovery"); !strings.Contains(got, "down, lists 2") || !strings.Contains(got, "etcd error") {
		t.Error(got)
	}
	one.Ping("10.0.0.2", 1)
	etcd.begin()
	state("etcd is back", func(d api.Discovery) bool { return d.Registry.Up && d.Registry.VTEPs == 2 && d.Up == 1 })

	two.write(file(2, "/elsewhere"))
	two.ctl("reload")
	state("the other is elsewhere", func(d api.Discovery) bool { return d.Registry.VTEPs == 1 && d.Neighbours == 0 })
	two.write(file(2, "/lab"))
	two.ctl("reload")
	state("a neighbour again", func(d api.Discovery) bool { return d.Registry.VTEPs == 2 && d.Up == 1 })
}
