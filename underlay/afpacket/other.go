//go:build !linux

package afpacket

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay"
)

// Underlay is an underlay of packet sockets. It needs Linux; elsewhere [Listen] fails.
type Underlay struct{ methods }

// methods are never called, because there is no Underlay.
type methods interface {
	Readers() []frame.Reader
	Sender(w int) frame.Sender
	LocalAddr() netip.AddrPort
	Is4() bool
	MTU() int
	PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte))
	Unreachable(f func(to frame.Endpoint, quoted []byte))
	Superframes(f func(payload []byte) bool)
	Sockets(c underlay.TxConfig) (uint8, error)
	Join(group netip.Addr) error
	Leave(group netip.Addr) error
	Pause()
	Resume()
	Close() error
	Stats() underlay.Stats
}

// Listen returns an error that wraps errors.ErrUnsupported.
func Listen(local netip.AddrPort, cfg *Config) (*Underlay, error) {
	if err := needPort(local); err != nil {
		return nil, err
	}
	return unsupported(local, cfg)
}

// ListenIP returns an error that wraps errors.ErrUnsupported.
func ListenIP(local netip.Addr, cfg *Config) (*Underlay, error) {
	return unsupported(netip.AddrPortFrom(local, 0), cfg)
}

// unsupported returns what is wrong with the settings, as on Linux, or else errors.ErrUnsupported.
func unsupported(local netip.AddrPort, cfg *Config) (*Underlay, error) {
	if err := cfg.Check(local); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("afpacket: %w", errors.ErrUnsupported)
}
