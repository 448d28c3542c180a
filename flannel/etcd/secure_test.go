package etcd_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
)

// With TLS, a node needs a certificate of the CA, and so does etcd.
func TestTLS(t *testing.T) {
	dir := etcdlab.Certificates(t, "server", "node")
	other := etcdlab.Certificates(t, "stranger")
	file := func(dir, name string) string { return filepath.Join(dir, name) }
	s := etcdlab.Start(t, etcdlab.Secure(dir))
	l := newLab(t, s)
	l.cfg.Timeout = time.Second
	l.cfg.CertFile, l.cfg.KeyFile, l.cfg.CAFile = file(dir, "node.pem"), file(dir, "node.key"), file(dir, "ca.pem")
	l.acquire(&flannel.Registry{KV: l.store()})

	// Of a certificate that etcd does not want, the connection may have heard no more than that etcd has closed it.
	for name, f := range map[string]struct {
		change func(c *etcd.Config)
		want   string
	}{
		"another CA":            {func(c *etcd.Config) { c.CAFile = file(other, "ca.pem") }, "unknown authority"},
		"a stranger":            {func(c *etcd.Config) { c.CertFile, c.KeyFile = file(other, "stranger.pem"), file(other, "stranger.key") }, "deadline exceeded: "},
		"without a certificate": {func(c *etcd.Config) { c.CertFile, c.KeyFile = "", "" }, "deadline exceeded: "},
		"the system's CAs":      {func(c *etcd.Config) { c.CAFile = "" }, "context deadline exceeded: transport: authentication handshake failed"},
		"without TLS":           {func(c *etcd.Config) { *c = etcd.Config{Endpoints: []string{"http://" + s.Addr}, Timeout: time.Second} }, "reading server preface"},
		"nobody there": {func(c *etcd.Config) {
			*c = etcd.Config{Endpoints: []string{"http://127.0.0.1:1"}, Timeout: time.Second}
		}, "connect: connection refused"},
	} {
		c, want := l.cfg, f.want
		f.change(&c)
		x, err := etcd.New(&c)
		check.OK(t, err)
		if _, err := x.List(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		x.Close()
	}
	for name, change := range map[string]func(c *etcd.Config){
		"etcd: certificate " + file(dir, "none"):       func(c *etcd.Config) { c.CertFile = file(dir, "none") },
		"etcd: certificates of CAs: open":              func(c *etcd.Config) { c.CAFile = file(dir, "none") },
		"must have one in PEM":                         func(c *etcd.Config) { c.CAFile = file(dir, "node.key") },
		`KeyFile: "": it is needed with a certificate`: func(c *etcd.Config) { c.KeyFile = "" },
		`CertFile: "": it is needed with a key`:        func(c *etcd.Config) { c.CertFile = "" },
	} {
		c := l.cfg
		change(&c)
		if x, err := etcd.New(&c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, %v", name, x, err)
		}
	}
}

// A node is a user of etcd with rights for the prefix of the network alone.
func TestAuth(t *testing.T) {
	s := etcdlab.Start(t, etcdlab.Options{})
	l := newLab(t, s)
	l.setNetwork(networkJSON)
	for _, line := range []string{
		"user add root:secret", "role add root", "user grant-role root root",
		"user add node:pod", "role add flannel", "user grant-role node flannel",
		"role grant-permission flannel readwrite --prefix=true " + l.prefix + "/",
		"auth enable",
	} {
		s.Ctl(t, strings.Fields(line)...)
	}
	l.cfg.Username, l.cfg.Password, l.cfg.TTL = "node", "pod", time.Minute
	r := &flannel.Registry{KV: l.store()}
	n := check.Must(r.Network(t.Context()))(t)
	own, err := r.Acquire(t.Context(), n, want)
	check.OK(t, err)
	if err := r.Renew(t.Context(), own); err != nil {
		t.Error(err)
	}
	seen := make(chan flannel.Change, 10)
	ended := make(chan error, 1)
	go func() { ended <- r.Watch(t.Context(), func(c flannel.Change) { seen <- c }) }()
	if c := <-seen; len(c.Set) != 1 || !c.Set[0].Ours {
		t.Errorf("%+v", c)
	}
	if err := r.Release(t.Context(), own); err != nil {
		t.Error(err)
	}
	if c := <-seen; len(c.Deleted) != 1 {
		t.Errorf("%+v", c)
	}
	r.KV.(*etcd.Store).Close()
	<-ended

	c := l.cfg
	c.Prefix = "/other"
	x, err := etcd.New(&c)
	check.OK(t, err)
	defer x.Close()
	if _, err := x.List(t.Context()); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("another prefix: %v", err)
	}
	if err := x.Watch(t.Context(), func(flannel.Change) {}); err == nil {
		t.Error("watch of another prefix: no error")
	}
	c = l.cfg
	c.Password = "wrong"
	if x, err := etcd.New(&c); err == nil {
		if _, err = x.List(t.Context()); err == nil {
			t.Error("a wrong password: no error")
		}
		x.Close()
	}
	c = etcd.Config{Endpoints: []string{"http://127.0.0.1:1"}, Username: "node", Password: "pod", Timeout: time.Second}
	want := "etcd: connect: no answer from http://127.0.0.1:1: context deadline exceeded: "
	if _, err := etcd.New(&c); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "connection refused") {
		t.Errorf("%v, want %s", err, want)
	}
}
