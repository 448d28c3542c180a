//go:build !linux

package underlay

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// UDP is an underlay of UDP sockets. It exists on Linux only; elsewhere [ListenUDP] makes none.
type UDP struct{ udpMethods }

// IP is an underlay of raw IP sockets. It exists on Linux only; elsewhere [ListenIP] makes none.
type IP struct{ ipMethods }

// The methods of underlays that this system does not have, so that nobody calls them.
type (
	udpMethods interface {
		methods
		Sockets(c TxConfig) (uint8, error)
	}
	ipMethods interface{ methods }
	methods   interface {
		Readers() []frame.Reader
		Sender(w int) frame.Sender
		LocalAddr() netip.AddrPort
		Is4() bool
		MTU() int
		PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte))
		Unreachable(f func(to frame.Endpoint, quoted []byte))
		Superframes(f func(payload []byte) bool)
		Join(group netip.Addr) error
		Leave(group netip.Addr) error
		Pause()
		Resume()
		Close() error
		Stats() Stats
	}
)

// ListenUDP returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func ListenUDP(local netip.AddrPort, cfg *UDPConfig) (*UDP, error) {
	if err := cfg.Check(local); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("underlay: UDP: %w", errors.ErrUnsupported)
}

// ListenIP returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func ListenIP(local netip.Addr, cfg *IPConfig) (*IP, error) {
	if err := cfg.Check(local); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("underlay: IP: %w", errors.ErrUnsupported)
}
