package water

import (
	"fmt"

	"github.com/songgao/water"
)

// check says what water.New would not.
func check(c *water.Config) error {
	if len(c.Name) > 15 { // IFNAMSIZ - 1
		return fmt.Errorf("water.Config.Name: %q is longer than 15 bytes", c.Name)
	}
	return nil
}
