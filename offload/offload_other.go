//go:build !linux

package offload

import (
	"errors"
	"fmt"
	"iter"
	"runtime"

	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// An Offload carries flows of one switch, on Linux only.
type Offload struct{}

// New returns an error that wraps [errors.ErrUnsupported]: flows are carried on Linux only.
func New(_ *vswitch.Switch, cfg *Config) (*Offload, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if err := c.complete(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("offload: %s has no eBPF; Linux 6.6 or later does: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Close does nothing.
func (o *Offload) Close() error { return nil }

// Hint implements vswitch.Offload.
func (o *Offload) Hint(vswitch.Pair) {}

// Changed implements vswitch.Offload.
func (o *Offload) Changed(frame.VNI, frame.MAC) {}

// Settle implements vswitch.Offload.
func (o *Offload) Settle() {}

// Flows iterates over no flows.
func (o *Offload) Flows() iter.Seq[Entry] { return func(func(Entry) bool) {} }

// Stats returns no counters.
func (o *Offload) Stats() (Stats, error) { return Stats{}, nil }
