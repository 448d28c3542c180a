package port

import (
	"fmt"

	"github.com/songgao/water"
)

// checkWater says what water.New would not.
func checkWater(c *water.Config) error {
	if len(c.Name) > 15 { // IFNAMSIZ - 1
		return fmt.Errorf("water.Config.Name: %q is longer than 15 bytes", c.Name)
	}
	return nil
}
