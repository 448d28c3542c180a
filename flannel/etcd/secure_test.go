package etcd_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
)

// certificates writes a CA and certificates signed by it, for loopback and for clients, into a folder.
func certificates(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write := func(file, kind string, der []byte, err error) {
		t.Helper()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var ca *x509.Certificate
	var caKey *ecdsa.PrivateKey
	for i, name := range append([]string{"ca"}, names...) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true, IsCA: ca == nil,
		}
		if ca == nil {
			ca, caKey = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, ca, &key.PublicKey, caKey)
		write(name+".pem", "CERTIFICATE", der, err)
		der, err = x509.MarshalECPrivateKey(key)
		write(name+".key", "EC PRIVATE KEY", der, err)
	}
	return dir
}

// With TLS, a node needs a certificate of the CA, and so does etcd.
func TestTLS(t *testing.T) {
	dir := certificates(t, "server", "node")
	other := certificates(t, "stranger")
	file := func(dir, name string) string { return filepath.Join(dir, name) }
	s := etcdlab.Start(t, etcdlab.Options{
		Scheme: "https",
		Args:   []string{"--cert-file", file(dir, "server.pem"), "--key-file", file(dir, "server.key"), "--client-cert-auth", "--trusted-ca-file", file(dir, "ca.pem")},
		Ctl:    []string{"--cert", file(dir, "node.pem"), "--key", file(dir, "node.key"), "--cacert", file(dir, "ca.pem")},
	})
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
		if err != nil {
			t.Fatal(err)
		}
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
	n, err := r.Network(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own, err := r.Acquire(t.Context(), n, want)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
