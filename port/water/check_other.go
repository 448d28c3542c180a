//go:build !linux

package water

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/songgao/water"
)

// check says what water.New would not.
func check(c *water.Config) error {
	switch runtime.GOOS {
	case "darwin", "windows":
		return nil
	}
	return fmt.Errorf("on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
