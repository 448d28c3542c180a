package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/discovery/internal/endp"
	"github.com/vxswitch/vxswitch/discovery/internal/seal"
	"github.com/vxswitch/vxswitch/discovery/internal/wire"
	"github.com/vxswitch/vxswitch/internal/secret"
	"github.com/vxswitch/vxswitch/setting"
)

// DefaultOwner is the default of Config.Owner.
const DefaultOwner = "discovery"

// DefaultPort is the default of Config.Port.
const DefaultPort = 4797

// Limits of settings.
const (
	MaxServers    = 2
	MaxNeighbours = 64
	MinKey        = 16 // bytes
	maxKeyFile    = 1 << 16
)

// Config says who the node is, and where it finds others. All segments with the tunnel take part.
type Config struct {
	Tunnel string     `json:"tunnel"` // the node's tunnel of segments that take part; needed
	Local  netip.Addr `json:"local"`  // address of the tunnel, by which others know us; needed

	Network    uint32       `json:"network,omitzero"`     // VTEPs of the same network ID find each other; default 0
	Servers    []netip.Addr `json:"servers,omitempty"`    // one or two VTEPs that list those of the network; one that is Local makes the node a server, for all networks
	Neighbours []netip.Addr `json:"neighbours,omitempty"` // VTEPs to talk to in any case, which have us among theirs; up to 64

	KeyFile string `json:"keyFile"`       // file with keys, each a line of its number from 0 to 255, a space and 16 bytes or more, beside empty lines and those that begin with #; the first is sent with; read again when it is written; needed
	Name    string `json:"name,omitzero"` // of the node, for others to show; up to 32 bytes
	Port    uint16 `json:"port,omitzero"` // UDP port of all VTEPs of the network; default 4797

	// Registry, if not nil, lists the VTEPs of the network too, such as that of package etcd.
	Registry Registry `json:"-"`

	// Owner is that of the rows, "" for [DefaultOwner].
	Owner string `json:"-"`

	// In runs f where the socket is to be opened, such as in a network namespace. Nil opens it where Run is.
	In func(f func()) `json:"-"`

	// Log, if not nil, gets which neighbours come and go, and what is refused.
	Log *slog.Logger `json:"-"`
}

// Check returns the errors in the settings as [setting.Errors]. The file is read by New and Configure.
func (c *Config) Check() error {
	if c == nil {
		return errors.New("discovery: the Config is nil")
	}
	w := setting.Of("discovery: Config")
	if c.Tunnel == "" {
		w.Want("Tunnel", c.Tunnel, "the name of a tunnel")
	}
	switch {
	case !c.Local.IsValid():
		w.Wrong("Local", nil, "an address of the tunnel is required")
	case !wire.IsVTEP(c.Local):
		w.Want("Local", c.Local, "an address of this host")
	}
	if len(c.Servers) > MaxServers {
		w.Wrong("Servers", len(c.Servers), "must be at most %d", MaxServers)
	}
	if len(c.Neighbours) > MaxNeighbours {
		w.Wrong("Neighbours", len(c.Neighbours), "must be at most %d", MaxNeighbours)
	}
	for _, x := range []struct {
		name string
		list []netip.Addr
	}{{"Servers", c.Servers}, {"Neighbours", c.Neighbours}} {
		for i, a := range x.list {
			at := fmt.Sprintf("%s[%d]", x.name, i)
			switch {
			case !wire.IsVTEP(a) || wire.IsVTEP(c.Local) && a.Is4() != c.Local.Is4():
				w.Want(at, a, "the address of a VTEP, of the family of local")
			case slices.Contains(x.list[:i], a):
				w.Wrong(at, a, "is there already")
			case x.name == "Neighbours" && a == c.Local:
				w.Wrong(at, a, "is local, the node itself")
			}
		}
	}
	if c.KeyFile == "" {
		w.Want("KeyFile", c.KeyFile, "the path of a file with keys")
	}
	if !wire.IsName(c.Name) {
		w.Want("Name", c.Name, "up to %d bytes of printable UTF-8", endp.MaxName)
	}
	return w.Err()
}

func (c *Config) owner() string { return cmp.Or(c.Owner, DefaultOwner) }

func (c *Config) port() uint16 { return cmp.Or(c.Port, DefaultPort) }

// serves reports whether we are a server.
func (c *Config) serves() bool { return slices.Contains(c.Servers, c.Local) }

// Restarts reports whether [Speaker.Configure] refuses to change c into next.
func (c *Config) Restarts(next *Config) bool { return c.fixed(next) != "" }

// fixed returns the first field that is another one in next and cannot change.
func (c *Config) fixed(next *Config) string {
	switch {
	case c.Tunnel != next.Tunnel:
		return "Tunnel"
	case c.Local != next.Local:
		return "Local"
	case c.Network != next.Network:
		return "Network"
	case c.Name != next.Name:
		return "Name"
	case c.port() != next.port():
		return "Port"
	}
	return ""
}

// keys reads the file, and which key is its first. An error names the line, and nothing that is in it.
func (c *Config) keys() (all seal.Keys, first uint8, err error) {
	text, err := secret.Read(c.KeyFile)
	if err != nil {
		return nil, 0, fmt.Errorf("discovery: Config.KeyFile: %q: %w", c.KeyFile, err)
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("discovery: Config.KeyFile: %q: %s", c.KeyFile, fmt.Sprintf(format, args...))
	}
	if len(text) > maxKeyFile {
		return nil, 0, wrong("has %d bytes; must have at most %d", len(text), maxKeyFile)
	}
	all = seal.Keys{}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		number, key, _ := strings.Cut(line, " ")
		id, err := strconv.ParseUint(number, 10, 8)
		switch key = strings.TrimSpace(key); {
		case err != nil:
			return nil, 0, wrong("line %d: must begin with a number from 0 to 255", i+1)
		case len(key) < MinKey:
			return nil, 0, wrong("line %d: the key has %d bytes; must have %d or more", i+1, len(key), MinKey)
		case all[uint8(id)] != nil:
			return nil, 0, wrong("line %d: there is a key %d already", i+1, id)
		}
		if len(all) == 0 {
			first = uint8(id)
		}
		all[uint8(id)] = []byte(key)
	}
	if len(all) == 0 {
		return nil, 0, wrong("has no key")
	}
	return all, first, nil
}
