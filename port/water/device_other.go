//go:build !linux && !darwin && !windows

package water

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/songgao/water"
)

func named(string, bool) (water.Config, error) { return water.Config{}, check(nil) }

// check says what water.New would not.
func check(*water.Config) error {
	return fmt.Errorf("on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
