package etcd

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/internal/secret"
	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of a Config.
const (
	DefaultEndpoint  = "http://127.0.0.1:2379"
	DefaultPrefix    = "/coreos.com/network"
	DefaultTimeout   = 10 * time.Second
	DefaultKeepAlive = 5 * time.Second

	minTTL = 2 * time.Second // etcd rounds up to its own minimum, and expires keys within half a second
	maxTTL = 365 * 24 * time.Hour
)

// Config says where etcd is. The zero value is etcd on this host, without TLS, with flannel's prefix.
type Config struct {
	Endpoints []string `json:"etcdEndpoints,omitempty"` // URLs of etcd's members, http or https; default "http://127.0.0.1:2379"
	Prefix    string   `json:"etcdPrefix,omitzero"`     // prefix of all keys in etcd; default "/coreos.com/network"

	Username string `json:"etcdUsername,omitzero"` // name of a user in etcd; default none
	Password string

	PasswordFile string `json:"etcdPasswordFile,omitzero"` // file with the password of that user in its first line, which is no setting, because settings are shown; default none

	CertFile string `json:"etcdCertFile,omitzero"` // the client's certificate, a PEM file that is read again for each connection; default none
	KeyFile  string `json:"etcdKeyFile,omitzero"`  // its key, likewise
	CAFile   string `json:"etcdCAFile,omitzero"`   // certificates that sign those of the members, a PEM file; default those of the system

	TLS *tls.Config // if not nil, instead of the files

	TTL       time.Duration // of leases, 2 s to a year, in full seconds; 0 = 24 h, as flannel has it
	Timeout   time.Duration // of each call, at least 100 ms; 0 = 10 s
	KeepAlive time.Duration // probes of a connection from which nothing comes, and how long an answer may take, at least 100 ms; 0 = 5 s
}

// Check returns the errors in the settings as [setting.Errors].
func (c *Config) Check() error {
	w := setting.Of("etcd: Config")
	for _, e := range c.Endpoints {
		if !isEndpoint(e) {
			if u, err := url.Parse(e); err == nil && u.User != nil {
				e = u.Redacted()
			}
			w.Want("Endpoints", e, "URLs such as %s, with a port, and without a user or a path", DefaultEndpoint)
		}
	}
	if c.Prefix != "" && (!strings.HasPrefix(c.Prefix, "/") || path.Clean(c.Prefix) == "/") {
		w.Want("Prefix", c.Prefix, "a path such as %s", DefaultPrefix)
	}
	if c.CertFile != "" && c.KeyFile == "" {
		w.Wrong("KeyFile", c.KeyFile, "it is needed with a certificate")
	} else if c.CertFile == "" && c.KeyFile != "" {
		w.Wrong("CertFile", c.CertFile, "it is needed with a key")
	}
	if c.Password != "" && c.Username == "" {
		w.Wrong("Username", c.Username, "it is needed with a password")
	}
	if c.PasswordFile != "" && c.Username == "" {
		w.Wrong("PasswordFile", c.PasswordFile, "requires a user name")
	}
	if c.TTL != 0 && (c.TTL < minTTL || c.TTL > maxTTL || c.TTL%time.Second != 0) {
		w.Want("TTL", c.TTL, "full seconds from %v to %v, or 0 for %v", minTTL, maxTTL, flannel.DefaultTTL)
	}
	for name, d := range map[string]time.Duration{"Timeout": c.Timeout, "KeepAlive": c.KeepAlive} {
		if d != 0 && d < 100*time.Millisecond {
			w.Want(name, d, "100ms or longer, or 0 for the default")
		}
	}
	return w.Err()
}

// isEndpoint reports whether a text is the URL of a member. The client would dial one without a port for ever.
func isEndpoint(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
		return false
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0
}

// CheckFiles returns as [setting.Errors] which files cannot be read.
func (c *Config) CheckFiles() error {
	w := setting.Of("etcd: Config")
	for _, f := range []struct {
		field, file string
		read        func(string) (string, error)
	}{{"PasswordFile", c.PasswordFile, secret.Password}, {"CertFile", c.CertFile, secret.Read}, {"KeyFile", c.KeyFile, secret.Read}, {"CAFile", c.CAFile, secret.Read}} {
		if f.file == "" {
			continue
		}
		if _, err := f.read(f.file); err != nil {
			w.Wrong(f.field, f.file, "%v", err)
		}
	}
	return w.Err()
}

// full returns the settings with defaults filled in.
func (c Config) full() Config {
	if len(c.Endpoints) == 0 {
		c.Endpoints = []string{DefaultEndpoint}
	}
	c.Prefix = path.Clean(cmp.Or(c.Prefix, DefaultPrefix))
	c.TTL = cmp.Or(c.TTL, flannel.DefaultTTL)
	c.Timeout, c.KeepAlive = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.KeepAlive, DefaultKeepAlive)
	return c
}

// tls returns the settings for TLS, nil without it.
func (c *Config) tls() (*tls.Config, error) {
	secure := false
	for _, e := range c.Endpoints {
		secure = secure || strings.HasPrefix(e, "https://")
	}
	if c.TLS != nil || !secure && c.CertFile == "" && c.CAFile == "" {
		return c.TLS, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CertFile != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
			return &pair, err
		}
		if _, err := load(); err != nil {
			return nil, fmt.Errorf("etcd: certificate %s, key %s: %w", c.CertFile, c.KeyFile, err)
		}
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("etcd: certificates of CAs: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("etcd: certificates of CAs: %s: must have one in PEM", c.CAFile)
		}
	}
	return t, nil
}
