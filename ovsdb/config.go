package ovsdb

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
)

// DefaultOwner is the default of Config.Owner.
const DefaultOwner = "ovsdb"

// Config says which database there is, and which switch the node is in it.
type Config struct {
	Target    string       `json:"target"`            // ovsdb-server: unix:PATH, tcp:IP:PORT or ssl:IP:PORT; needed
	Name      string       `json:"name"`              // Physical_Switch.name; needed
	Ports     []string     `json:"ports,omitempty"`   // ports of the node that the controller may bind
	Tunnel    string       `json:"tunnel"`            // the node's tunnel for all segments; needed
	TunnelIPs []netip.Addr `json:"tunnelIPs"`         // addresses of the tunnel; needed
	CA        string       `json:"caFile,omitzero"`   // for ssl: certificates that the server's must be signed by; needed
	Cert      string       `json:"certFile,omitzero"` // for ssl: our certificate; needed
	Key       string       `json:"keyFile,omitzero"`  // for ssl: its key; needed

	// Owner is that of the rows and segments, "" for [DefaultOwner].
	Owner string `json:"-"`

	// Log, if not nil, gets what happens to the connection, and what is refused.
	Log *slog.Logger `json:"-"`
}

// Check returns the first error of the settings. Files are read when Run connects.
func (c *Config) Check() error {
	network, addr, tls, err := c.target()
	_, _, _ = network, addr, tls
	switch {
	case err != nil:
		return err
	case c.Name == "":
		return fmt.Errorf(`ovsdb: name: "": the name of the Physical_Switch is required`)
	case c.Tunnel == "":
		return fmt.Errorf(`ovsdb: tunnel: "": the name of a tunnel is required`)
	case len(c.TunnelIPs) == 0:
		return fmt.Errorf("ovsdb: tunnelIPs: none: the addresses of the tunnel are required")
	}
	for _, a := range c.TunnelIPs {
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" || a.Is4In6() {
			return fmt.Errorf("ovsdb: tunnelIPs: %q: must be addresses of this host", a)
		}
	}
	seen := map[string]bool{}
	for _, p := range c.Ports {
		if p == "" || seen[p] {
			return fmt.Errorf("ovsdb: ports: %q: must be names of ports, each once", p)
		}
		seen[p] = true
	}
	for _, f := range []struct{ key, value string }{{"caFile", c.CA}, {"certFile", c.Cert}, {"keyFile", c.Key}} {
		if tls != (f.value != "") {
			return fmt.Errorf("ovsdb: %s: %q: must be set with an ssl target, and with no other", f.key, f.value)
		}
	}
	return nil
}

// target returns what to dial.
func (c *Config) target() (network, addr string, tls bool, err error) {
	kind, addr, _ := strings.Cut(c.Target, ":")
	switch kind {
	case "unix":
		if addr != "" {
			return "unix", addr, false, nil
		}
	case "tcp", "ssl":
		if _, err := netip.ParseAddrPort(addr); err == nil {
			return "tcp", addr, kind == "ssl", nil
		}
	}
	return "", "", false, fmt.Errorf("ovsdb: target: %q: must be unix:PATH, tcp:IP:PORT or ssl:IP:PORT", c.Target)
}

// dial opens a connection. The certificate of a server is checked against CA, not its name, for servers of OVSDB have none.
func (c *Config) dial(ctx context.Context) (net.Conn, error) {
	network, addr, secure, err := c.target()
	if err != nil {
		return nil, err
	}
	if !secure {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	pem, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("ovsdb: caFile: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ovsdb: caFile: %q: has no certificate", c.CA)
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("ovsdb: certFile and keyFile: %w", err)
	}
	return (&tls.Dialer{Config: &tls.Config{
		Certificates:       []tls.Certificate{pair},
		InsecureSkipVerify: true, // VerifyConnection does it, without the name
		VerifyConnection: func(s tls.ConnectionState) error {
			between := x509.NewCertPool()
			for _, x := range s.PeerCertificates[1:] {
				between.AddCert(x)
			}
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
			return err
		},
	}}).DialContext(ctx, network, addr)
}

func (c *Config) owner() string { return cmp.Or(c.Owner, DefaultOwner) }
