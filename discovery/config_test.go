package discovery

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func good() *Config {
	return &Config{Tunnel: "vx", Local: addr(0), Servers: []netip.Addr{addr(0), addr(1)}, Neighbours: []netip.Addr{addr(2)}, KeyFile: "/k"}
}

// Errors name the setting, its value, and what is allowed.
func TestCheck(t *testing.T) {
	check.OK(t, good().Check())
	for want, edit := range map[string]func(c *Config){
		`Tunnel: "": must be the name of a tunnel`:                                   func(c *Config) { c.Tunnel = "" },
		`Local: 0.0.0.0: must be an address of this host`:                            func(c *Config) { c.Local = netip.IPv4Unspecified() },
		`Local: an address of the tunnel is required`:                                func(c *Config) { c.Local = netip.Addr{} },
		`Servers: 3: must be at most 2`:                                              func(c *Config) { c.Servers = append(c.Servers, addr(3)) },
		`Servers[1]: 192.0.2.1: is there already`:                                    func(c *Config) { c.Servers[1] = addr(0) },
		`Servers[0]: 2001:db8::1: must be the address of a VTEP, of the family of l`: func(c *Config) { c.Servers[0] = netip.MustParseAddr("2001:db8::1") },
		`Neighbours[0]: 192.0.2.1: is local, the node itself`:                        func(c *Config) { c.Neighbours[0] = addr(0) },
		"Servers[1]: 192.0.2.1: is there already\ndiscovery: Config.Neighbours[0]: 192.0.2.1: is local, the node itself": func(c *Config) {
			c.Servers[1], c.Neighbours[0] = addr(0), addr(0)
		},
		`KeyFile: "": must be the path of a file with keys`:       func(c *Config) { c.KeyFile = "" },
		`Name: "a\tb": must be up to 32 bytes of printable UTF-8`: func(c *Config) { c.Name = "a\tb" },
	} {
		c := good()
		edit(c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A file has keys by number, and an error never has one of them.
func TestKeys(t *testing.T) {
	c := good()
	c.KeyFile = filepath.Join(t.TempDir(), "keys")
	const secret = "0123456789abcdef"
	for text, want := range map[string]string{
		"# comment\n\n7 " + secret + "\n1 " + secret + " and more\r\n": "",
		"":                                "has no key",
		"x " + secret:                     "line 1: must begin with a number from 0 to 255",
		"256 " + secret:                   "line 1: must begin with a number from 0 to 255",
		"\n1 " + secret[:15]:              "line 2: the key has 15 bytes; must have 16 or more",
		"1 " + secret + "\n1 " + secret:   "line 2: there is a key 1 already",
		strings.Repeat("#", maxKeyFile+1): "must have at most 65536",
	} {
		check.OK(t, os.WriteFile(c.KeyFile, []byte(text), 0o600))
		keys, first, err := c.keys()
		switch {
		case want == "" && (err != nil || first != 7 || len(keys) != 2 || string(keys[1]) != secret+" and more"):
			t.Errorf("%v, first %d, %v", keys, first, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret[:15])):
			t.Errorf("%v, want %s", err, want)
		}
	}
	c.KeyFile = t.TempDir() // as a pipe, which nobody may write to
	_, _, err := c.keys()
	check.ErrorHas(t, err, "discovery: Config.KeyFile: ", "must be a regular file")
	c.KeyFile = "/nowhere"
	if _, err := New(nil, c); err == nil || !strings.Contains(err.Error(), "KeyFile") {
		t.Errorf("%v", err)
	}
}

// A program that forgets the settings gets an error.
func TestNilConfig(t *testing.T) {
	check.ErrorHas(t, check.Err(New(nil, nil)), "discovery: the Config is nil")
	check.ErrorHas(t, new(Speaker).Configure(nil), "discovery: the Config is nil")
}

// What cannot change says so, and all else does.
func TestRestarts(t *testing.T) {
	for want, edit := range map[string]func(c *Config){
		"Tunnel":  func(c *Config) { c.Tunnel = "vy" },
		"Local":   func(c *Config) { c.Local = addr(9) },
		"Network": func(c *Config) { c.Network = 9 },
		"Name":    func(c *Config) { c.Name = "other" },
		"Port":    func(c *Config) { c.Port = 9 },
		"":        func(c *Config) { c.Servers, c.Neighbours, c.KeyFile, c.Port = nil, nil, "/other", DefaultPort },
	} {
		c := good()
		if edit(c); good().fixed(c) != want {
			t.Errorf("%q, want %q", good().fixed(c), want)
		}
	}
}
