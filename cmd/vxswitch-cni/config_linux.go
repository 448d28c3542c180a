package main

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	cniversion "github.com/containernetworking/cni/pkg/version"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/jsontype"
)

// config is the configuration of a network, with what the runtime adds.
type config struct {
	types.PluginConf

	VNI    *int64 `json:"vni"`
	Port   string `json:"port"`
	MTU    int    `json:"mtu"`
	Socket string `json:"socket"`

	RuntimeConfig struct {
		MAC string `json:"mac"`
	} `json:"runtimeConfig"`
}

// keys are those of config, and those that the specification has for all plugins. A key with a slash is of a runtime.
var keys = []string{"vni", "port", "mtu", "socket", "ipMasq", // the plugin flannel adds that
	"cniVersion", "name", "type", "capabilities", "ipam", "dns", "args", "runtimeConfig", "prevResult"}

// Kinds of the interface of a container.
const (
	veth = "veth" // one end of a veth pair, whose other end the node has (port type interface)
	tap  = "tap"  // a persistent TAP in the container's namespace
)

// readConfig reads a configuration as far as DEL and GC need it: they clean up also what was made with another.
func readConfig(text []byte) (*config, error) {
	c := new(config)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, undecodable(text, err), "")
	}
	return c, nil
}

// undecodable says why a configuration cannot be read: by the key whose value has the wrong type, if that is why.
func undecodable(text []byte, err error) string {
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) || t.Field == "" {
		return "network configuration: " + err.Error()
	}
	t.Field = strings.TrimPrefix(t.Field, "PluginConf.")
	value, allowed := jsontype.Explain(text, t)
	return fmt.Sprintf("%s: %s: must be %s", t.Field, value, allowed)
}

// checkedConfig reads a configuration that must be right.
func checkedConfig(text []byte) (*config, error) {
	all := map[string]json.RawMessage{}
	c, err := readConfig(text)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(keys, key) && !strings.Contains(key, "/") {
			return nil, types.NewError(types.ErrUnsupportedField, fmt.Sprintf("%s: %s: unknown key; must be one of %s", key, all[key], strings.Join(keys, ", ")), "")
		}
	}
	switch {
	case len(c.alias()) > maxAlias:
		return nil, invalid("name: %d bytes: must be at most %d", len(c.Name), maxAlias-len(c.alias())+len(c.Name))
	case c.VNI == nil:
		return nil, invalid("vni: required; must be a segment of vxswitchd, 0 to %d", frame.MaxVNI)
	case *c.VNI < 0 || *c.VNI > int64(frame.MaxVNI):
		return nil, invalid("vni: %d: must be 0 to %d", *c.VNI, frame.MaxVNI)
	case c.Port != "" && c.Port != veth && c.Port != tap:
		return nil, invalid("port: %q: must be %s or %s", c.Port, veth, tap)
	case c.MTU != 0 && (c.MTU < 68 || c.MTU > 65521):
		return nil, invalid("mtu: %d: must be 68 to 65521, or 0 for what fits the tunnels of the segment", c.MTU)
	case c.Socket != "" && !filepath.IsAbs(c.Socket):
		return nil, invalid("socket: %q: must be an absolute path", c.Socket)
	}
	if _, err := c.mac(); err != nil {
		return nil, err
	}
	if err := cniversion.ParsePrevResult(&c.PluginConf); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "prevResult: "+err.Error(), "")
	}
	return c, nil
}

func invalid(format string, args ...any) error {
	return types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf(format, args...), "")
}

// mac returns the MAC that the runtime has chosen, nil for any.
func (c *config) mac() (net.HardwareAddr, error) {
	text := c.RuntimeConfig.MAC
	if text == "" {
		return nil, nil
	}
	m, err := frame.ParseMAC(text)
	if err != nil || m.IsGroup() || m.IsZero() {
		return nil, invalid("runtimeConfig.mac: %q: must be the MAC of one host, such as 02:00:00:00:00:01", text)
	}
	return net.HardwareAddr(m[:]), nil
}

// prev returns what the plugins before this one have made, nil if it is the first.
func (c *config) prev() (*current.Result, error) {
	if c.PrevResult == nil {
		return nil, nil
	}
	r, err := current.NewResultFromResult(c.PrevResult)
	if err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "prevResult: "+err.Error(), "")
	}
	return r, nil
}

// tap reports whether the interface is a TAP.
func (c *config) tap() bool { return c.Port == tap }

// owner is how the node calls the network as the owner of ports.
func (c *config) owner() string { return "vxswitch-cni/" + c.Name }

// portName returns the name of the port of a container's interface: the same for each command, and in the 15 bytes of a device's
// name another for every interface of every container (65 bits of a hash).
func portName(container, ifname string) string {
	sum := sha256.Sum256([]byte(container + "/" + ifname)) // neither has a slash
	return "vx" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:13]
}
