package water

import (
	"fmt"

	"github.com/songgao/water"
)

// named returns the settings of a device with a name.
func named(name string, tun bool) (water.Config, error) {
	c := water.Config{DeviceType: water.TAP}
	if tun {
		c.DeviceType = water.TUN
	}
	c.Name = name
	return c, nil
}

// check says what water.New would not.
func check(c *water.Config) error {
	if len(c.Name) > 15 { // IFNAMSIZ - 1
		return fmt.Errorf("water.Config.Name: %q is longer than 15 bytes", c.Name)
	}
	return nil
}
