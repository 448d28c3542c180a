package ovsdb

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/snoop"
)

func good() *Config {
	return &Config{Target: "unix:/run/db.sock", Name: "us", Tunnel: "vx", Ports: []string{"p1"}, TunnelIPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
}

// Errors name the setting, its value, and what is allowed.
func TestCheck(t *testing.T) {
	check.OK(t, good().Check())
	for want, edit := range map[string]func(c *Config){
		`ovsdb: Config.Target: unix:PATH, tcp:IP[:PORT] or ssl:IP[:PORT] is required, or in its place listen or database`: func(c *Config) { c.Target = "" },
		`ovsdb: Config.Target: "tcp:x": must be unix:PATH, tcp:IP[:PORT] or ssl:IP[:PORT]`:                                func(c *Config) { c.Target = "tcp:x" },
		`ovsdb: Config.Name: the name of the Physical_Switch is required`:                                                 func(c *Config) { c.Name = "" },
		`ovsdb: Config.Name: "a\nb": must be printable UTF-8`:                                                             func(c *Config) { c.Name = "a\nb" },
		`ovsdb: Config.TunnelIPs[1]: 192.0.2.1: tunnelIPs[0] is this address already`:                                     func(c *Config) { c.TunnelIPs = append(c.TunnelIPs, c.TunnelIPs[0]) },
		`ovsdb: Config.Tunnel: the name of a tunnel is required`:                                                          func(c *Config) { c.Tunnel = "" },
		`ovsdb: Config.TunnelIPs[0]: 224.0.0.1: must be an address of this host`:                                          func(c *Config) { c.TunnelIPs = []netip.Addr{netip.MustParseAddr("224.0.0.1")} },
		`ovsdb: Config.Ports[1]: "p1": ports[0] is this port already`:                                                     func(c *Config) { c.Ports = []string{"p1", "p1"} },
		`ovsdb: Config.Ports[0]: "": must be the name of a port`:                                                          func(c *Config) { c.Ports = []string{""} },
		`ovsdb: Config.Multicast.Limit: -1: must be 0 or more`:                                                            func(c *Config) { c.Multicast = &snoop.Config{Querier: true, Limit: -1} },
		"ovsdb: Config.CA: a file is required with ssl or pssl\novsdb: Config.Cert: a file is required with ssl or pssl\novsdb: Config.Key: a file is required with ssl or pssl": func(c *Config) {
			c.Target = "ssl:127.0.0.1:6640"
		},
		`ovsdb: Config.Key: "/k": is for ssl and pssl only; managers with ssl need all three files`:                              func(c *Config) { c.Key = "/k" },
		`ovsdb: Config.Target: "unix:/run/db.sock": is of another server; with listen or database the node itself is the server`: func(c *Config) { c.Database = "/db" },
		`ovsdb: Config.Listen[0]: "tcp:1": must be punix:PATH, ptcp:[PORT][:IP] or pssl:[PORT][:IP]`:                             func(c *Config) { c.Target, c.Listen = "", []string{"tcp:1"} },
		`ovsdb: Config.Listen[1]: "ptcp:": listen[0] is this address already`:                                                    func(c *Config) { c.Target, c.Listen = "", []string{"ptcp:", "ptcp:"} },
		`ovsdb: Config.Listen[1]: "ptcp:6640:0.0.0.0": listen[0] is this address already`:                                        func(c *Config) { c.Target, c.Listen = "", []string{"ptcp:", "ptcp:6640:0.0.0.0"} },
	} {
		c := good()
		edit(c)
		if err := c.Check(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A program that forgets the settings gets an error.
func TestNilConfig(t *testing.T) {
	n := check.Must(node.New(nil))(t)
	defer n.Close()
	check.ErrorHas(t, check.Err(New(n, nil)), "ovsdb: the Config is nil")
	check.ErrorHas(t, check.Must(New(n, good()))(t).Configure(nil), "ovsdb: the Config is nil")
}

// certificate writes a certificate that signs itself, and its key.
func certificate(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	k := check.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	x := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der := check.Must(x509.CreateCertificate(rand.Reader, x, x, k.Public(), k))(t)
	raw := check.Must(x509.MarshalPKCS8PrivateKey(k))(t)
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	check.OK(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	check.OK(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
	return cert, key
}

// With ssl, a server is one that caFile has signed, and gets our certificate.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	theirs, theirKey := certificate(t, dir, "theirs")
	ours, ourKey := certificate(t, dir, "ours")
	pair := check.Must(tls.LoadX509KeyPair(theirs, theirKey))(t)
	l := check.Must(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert}))(t)
	defer l.Close()
	got := make(chan int, 2)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.(*tls.Conn).Handshake()
			got <- len(conn.(*tls.Conn).ConnectionState().PeerCertificates)
			conn.Close()
		}
	}()
	c := good()
	c.Target, c.CA, c.Cert, c.Key = "ssl:"+l.Addr().String(), theirs, ours, ourKey
	check.OK(t, c.Check())
	conn := check.Must(c.dial(t.Context()))(t)
	conn.Close()
	if n := <-got; n != 1 {
		t.Errorf("the server got %d certificates", n)
	}
	c.Key = theirKey
	if _, err := c.dial(t.Context()); err == nil || !strings.Contains(err.Error(), ours) || !strings.Contains(err.Error(), theirKey) {
		t.Errorf("a key of another certificate: %v", err)
	}
	c.Key, c.CA = ourKey, ours
	if _, err := c.dial(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server of another authority: %v", err)
	}
}

// A server that accepts connections and never says a word is given up.
func TestSilentTLS(t *testing.T) {
	defer func(d time.Duration) { dialTime = d }(dialTime)
	dialTime = 10 * time.Millisecond
	dir := t.TempDir()
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	c := good()
	c.Target = "ssl:" + l.Addr().String()
	c.Cert, c.Key = certificate(t, dir, "ours")
	c.CA = c.Cert
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var timeout net.Error // of the connection, or of TLS
	if _, err := c.dial(ctx); !errors.As(err, &timeout) || !timeout.Timeout() || ctx.Err() != nil {
		t.Error(err)
	}
}
