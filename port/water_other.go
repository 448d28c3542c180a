//go:build !linux

package port

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/songgao/water"
)

// checkWater says what water.New would not.
func checkWater(c *water.Config) error {
	switch runtime.GOOS {
	case "darwin", "windows":
		return nil
	}
	return fmt.Errorf("water on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
