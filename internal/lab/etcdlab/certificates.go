package etcdlab

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
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Certificates writes a CA and certificates signed by it, for loopback and for clients, into a folder.
func Certificates(t testing.TB, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write := func(file, kind string, der []byte, err error) {
		t.Helper()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
		}
		check.OK(t, err)
	}
	var ca *x509.Certificate
	var caKey *ecdsa.PrivateKey
	for i, name := range append([]string{"ca"}, names...) {
		key := check.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
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

// Secure are the options of an etcd that knows its clients by certificates that Certificates has written: its own is "server", and that of etcdctl
// "node".
func Secure(dir string) Options {
	file := func(name string) string { return filepath.Join(dir, name) }
	return Options{
		Scheme: "https",
		Args:   []string{"--cert-file", file("server.pem"), "--key-file", file("server.key"), "--client-cert-auth", "--trusted-ca-file", file("ca.pem")},
		Ctl:    []string{"--cert", file("node.pem"), "--key", file("node.key"), "--cacert", file("ca.pem")},
	}
}
