//go:build !linux

package daemon

import (
	"errors"
	"fmt"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/node"
)

func (d *Daemon) hosted(node.Tunnel, *uplink) (flannel.Shape, error) {
	return nil, fmt.Errorf("mode tap: it needs Linux: %w", errors.ErrUnsupported)
}

func (d *Daemon) forget() error { return nil }
