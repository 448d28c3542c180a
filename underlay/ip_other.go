//go:build !linux

package underlay

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// IP is an underlay of raw IP sockets. It exists on Linux only; elsewhere [ListenIP] makes
// none.
type IP struct{ absent }

// ListenIP returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func ListenIP(local netip.Addr, cfg *IPConfig) (*IP, error) {
	if _, err := cfg.withDefaults(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("underlay: IP: %w", errors.ErrUnsupported)
}

// Unreachable has f called whenever a packet did not get to an endpoint.
func (u *IP) Unreachable(f func(to frame.Endpoint, quoted []byte)) {}
