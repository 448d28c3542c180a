package water

import (
	"errors"
	"fmt"
	"strings"

	"github.com/songgao/water"
)

// named returns the settings of a device with a name.
func named(name string, tun bool) (water.Config, error) {
	c := water.Config{DeviceType: water.TUN}
	c.Name = name
	switch {
	case !tun && strings.HasPrefix(name, "tap"):
		c.DeviceType, c.Driver = water.TAP, water.MacOSDriverTunTapOSX
	case !tun:
		return c, fmt.Errorf("macOS has no TAP devices: use a TUN, or the driver tuntaposx with a name such as tap0: %w", errors.ErrUnsupported)
	case strings.HasPrefix(name, "tun"):
		c.Driver = water.MacOSDriverTunTapOSX
	case name != "" && !strings.HasPrefix(name, "utun"):
		return c, errors.New("must be a name such as utun7, or empty for a free one")
	}
	return c, nil
}

func check(*water.Config) error { return nil }
