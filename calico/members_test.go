package calico

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
)

// A node knows etcd by certificates, and etcd it. Of three members each dies once, with one that the node is connected to among them: what changes meanwhile
// comes by another one. A certificate that etcd does not know leaves everything as it was, until there is a right one.
func TestMembers(t *testing.T) {
	dir, other := etcdlab.Certificates(t, "server", "node"), etcdlab.Certificates(t, "stranger")
	members := etcdlab.Cluster(t, 3, etcdlab.Secure(dir))
	file := func(name string) string { return filepath.Join(dir, name) }
	pool := x509.NewCertPool()
	check.True(t, pool.AppendCertsFromPEM(check.Must(os.ReadFile(file("ca.pem")))(t)), "no CA")
	pair := check.Must(tls.LoadX509KeyPair(file("node.pem"), file("node.key")))(t)
	var urls []string
	for _, m := range members {
		urls = append(urls, m.URL)
	}
	r := &rig{t: t}
	r.to = check.Must(clientv3.New(clientv3.Config{Endpoints: urls, Logger: zap.NewNop(), TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}}))(t)
	t.Cleanup(func() { r.to.Close() })
	r.fill()
	cfg := r.config(Workloads{})
	cfg.Etcd.Endpoints, cfg.Etcd.CertFile, cfg.Etcd.KeyFile, cfg.Etcd.CAFile = urls, file("node.pem"), file("node.key"), file("ca.pem")
	r.with(cfg)
	r.run()
	r.wait("rows", r.rows, initialRows)
	for i, m := range members {
		m.Stop()
		r.block("10.65.9.0/26", "b")
		r.wait(fmt.Sprint("a block while a member is away: ", i), r.rows, "10.65.2.0/26 192.0.2.2, 10.65.3.0/26 192.0.2.3, 10.65.9.0/26 192.0.2.2")
		m.Start()
		r.unset(blockKey("10.65.9.0/26"))
		r.wait(fmt.Sprint("no block: ", i), r.rows, initialRows)
	}

	stranger := *cfg
	stranger.Etcd.CertFile, stranger.Etcd.KeyFile = filepath.Join(other, "stranger.pem"), filepath.Join(other, "stranger.key")
	check.OK(t, r.plane.Configure(&stranger))
	r.wait("a certificate of another CA", r.stale, "true")
	r.block("10.65.9.0/26", "b")
	check.Equal(t, "rows", r.rows(), initialRows)
	check.OK(t, r.plane.Configure(cfg))
	r.wait("a right one", r.rows, "10.65.2.0/26 192.0.2.2, 10.65.3.0/26 192.0.2.3, 10.65.9.0/26 192.0.2.2")
	r.wait("stale", r.stale, "false")
}
