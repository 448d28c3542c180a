package ovsdb

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/ovsdb/internal/server"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/snoop"
)

// DefaultOwner is the default of Config.Owner.
const DefaultOwner = "ovsdb"

// Config says which database there is, and which switch the node is in it.
type Config struct {
	Target    string        `json:"target,omitzero"`     // of the ovsdb-server: unix:PATH, tcp:IP[:PORT] or ssl:IP[:PORT], by default port 6640; needed without listen or database
	Listen    []string      `json:"listen,omitempty"`    // where the node itself is the server, for controllers: punix:PATH, ptcp:[PORT][:IP] or pssl:[PORT][:IP], by default port 6640 of all IPv4 addresses
	Database  string        `json:"database,omitzero"`   // file of the node's own database, which it makes if there is none; without one, what controllers wrote is gone when the node ends
	Name      string        `json:"name"`                // of the Physical_Switch; needed
	Ports     []string      `json:"ports,omitempty"`     // ports of the node that the controller may bind
	Tunnel    string        `json:"tunnel"`              // of the node, of type vxlan, for all Logical_Switches; needed
	TunnelIPs []netip.Addr  `json:"tunnelIPs,omitempty"` // where peers send to; default the tunnel's own addresses
	Multicast *snoop.Config `json:"multicast,omitzero"`  // IGMP and MLD snooping in all Logical_Switches; the groups that hosts listen to are written to the database within 2 s; default none: frames to groups go to all ports
	CA        string        `json:"caFile,omitzero"`     // certificates that those of servers and controllers must be signed by; needed with ssl and pssl
	Cert      string        `json:"certFile,omitzero"`   // certificate of the node; needed with ssl and pssl
	Key       string        `json:"keyFile,omitzero"`    // its key; needed with ssl and pssl

	// Owner is that of the rows and segments, "" for [DefaultOwner].
	Owner string `json:"-"`

	// Log, if not nil, gets what happens to the connection, and what is refused.
	Log *slog.Logger `json:"-"`
}

// Check returns the errors in the settings as [setting.Errors]. Files are read when Run connects.
func (c *Config) Check() error {
	if c == nil {
		return errors.New("ovsdb: the Config is nil")
	}
	w := setting.Of("ovsdb: Config")
	target, ok := c.target()
	secure := ok && target.Secure
	switch {
	case c.embedded() && c.Target != "":
		w.Wrong("Target", c.Target, "is of another server; with listen or database the node itself is the server")
	case !c.embedded() && c.Target == "":
		w.Wrong("Target", nil, "unix:PATH, tcp:IP[:PORT] or ssl:IP[:PORT] is required, or in its place listen or database")
	case !c.embedded() && !ok:
		w.Want("Target", c.Target, "unix:PATH, tcp:IP[:PORT] or ssl:IP[:PORT]")
	}
	for i, l := range c.Listen {
		at := fmt.Sprintf("Listen[%d]", i)
		a, good := server.ParseListen(l)
		same := func(l string) bool {
			o, ok := server.ParseListen(l)
			return ok && o.Network == a.Network && o.Addr == a.Addr
		}
		if first := slices.IndexFunc(c.Listen, same); !good {
			w.Want(at, l, "punix:PATH, ptcp:[PORT][:IP] or pssl:[PORT][:IP]")
		} else if first < i {
			w.Wrong(at, l, "listen[%d] is this address already", first)
		}
		secure = secure || a.Secure
	}
	switch {
	case c.Name == "":
		w.Wrong("Name", nil, "the name of the Physical_Switch is required")
	case !utf8.ValidString(c.Name) || strings.ContainsFunc(c.Name, unicode.IsControl):
		w.Want("Name", c.Name, "printable UTF-8")
	}
	if c.Tunnel == "" {
		w.Wrong("Tunnel", nil, "the name of a tunnel is required")
	}
	for i, a := range c.TunnelIPs {
		at := fmt.Sprintf("TunnelIPs[%d]", i)
		if first := slices.Index(c.TunnelIPs, a); !ownAddr(a) {
			w.Want(at, a, "an address of this host")
		} else if first < i {
			w.Wrong(at, a, "tunnelIPs[%d] is this address already", first) // a set of the database has no value twice
		}
	}
	for i, p := range c.Ports {
		at := fmt.Sprintf("Ports[%d]", i)
		if first := slices.Index(c.Ports, p); p == "" {
			w.Want(at, p, "the name of a port")
		} else if first < i {
			w.Wrong(at, p, "ports[%d] is this port already", first)
		}
	}
	if c.Multicast != nil {
		m := *c.Multicast
		m.Send = func(frame.Dest, *frame.Frame) bool { return false } // as the node has it
		w.Add("Multicast", m.Check())
	}
	managers := c.embedded() && c.CA != "" && c.Cert != "" && c.Key != "" // may be ssl, too
	for _, f := range []struct{ name, value string }{{"CA", c.CA}, {"Cert", c.Cert}, {"Key", c.Key}} {
		switch {
		case !ok && !c.embedded():
		case secure && f.value == "":
			w.Wrong(f.name, nil, "a file is required with ssl or pssl")
		case !secure && !managers && f.value != "":
			w.Wrong(f.name, f.value, "is for ssl and pssl only; managers with ssl need all three files")
		}
	}
	return w.Err()
}

// ownAddr reports whether peers can send to a.
func ownAddr(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a.Zone() == "" && !a.Is4In6()
}

// Restarts reports whether [Switch.Configure] refuses to change c into next.
func (c *Config) Restarts(next *Config) bool { return c.fixed(next) != "" }

// fixed returns the first field that is another one in next and cannot change.
func (c *Config) fixed(next *Config) string {
	switch {
	case c.Target != next.Target:
		return "Target"
	case !slices.Equal(c.Listen, next.Listen):
		return "Listen"
	case c.Database != next.Database:
		return "Database"
	case c.Name != next.Name:
		return "Name"
	case c.Tunnel != next.Tunnel:
		return "Tunnel"
	case !reflect.DeepEqual(c.Multicast, next.Multicast):
		return "Multicast"
	case c.CA != next.CA:
		return "CA"
	case c.Cert != next.Cert:
		return "Cert"
	case c.Key != next.Key:
		return "Key"
	}
	return ""
}

// target returns what to dial.
func (c *Config) target() (a server.Addr, ok bool) {
	if path, ok := strings.CutPrefix(c.Target, "unix:"); ok {
		return server.Addr{Network: "unix", Addr: path}, path != ""
	}
	return server.ParseTarget(c.Target)
}

// dialTime is how long a server may take to accept a connection, with TLS.
var dialTime = 10 * time.Second

// dial opens a connection. The certificate of a server is checked against CA, not its name, for servers of OVSDB have none.
func (c *Config) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	a, _ := c.target()
	return a.Dial(ctx, c.secure)
}

// secure returns settings of TLS for both ends: each has a certificate that CA has signed.
func (c *Config) secure() (*tls.Config, error) {
	pem, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("ovsdb: Config.CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ovsdb: Config.CA: %q: has no certificate", c.CA)
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("ovsdb: Config.Cert: %q, Key: %q: %w", c.Cert, c.Key, err)
	}
	return &tls.Config{
		Certificates:       []tls.Certificate{pair},
		ClientAuth:         tls.RequireAnyClientCert,
		InsecureSkipVerify: true, // VerifyConnection does it, without the name
		VerifyConnection: func(s tls.ConnectionState) error {
			between := x509.NewCertPool()
			for _, x := range s.PeerCertificates[1:] {
				between.AddCert(x)
			}
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			return err
		},
	}, nil
}

// Where says where the database is: Target, or where the node itself listens, or its file.
func (c *Config) Where() string {
	switch {
	case c.Target != "":
		return c.Target
	case len(c.Listen) > 0:
		return strings.Join(c.Listen, " ")
	}
	return "file:" + c.Database
}

// embedded reports whether the node itself is the server.
func (c *Config) embedded() bool { return len(c.Listen) > 0 || c.Database != "" }

func (c *Config) owner() string { return cmp.Or(c.Owner, DefaultOwner) }
