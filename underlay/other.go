//go:build !linux

package underlay

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// UDP is the underlay of UDP sockets that this system has.
type UDP = Portable

// ListenUDP opens an underlay on a local address: see [ListenPortable].
func ListenUDP(local netip.AddrPort, cfg *UDPConfig) (*UDP, error) { return ListenPortable(local, cfg) }

// IP is an underlay of raw IP sockets. It exists on Linux only; elsewhere [ListenIP] makes none.
type IP struct{ ipMethods }

// The methods of an underlay that this system does not have, so that nobody calls them.
type ipMethods interface {
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

// ListenIP returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func ListenIP(local netip.Addr, cfg *IPConfig) (*IP, error) {
	if err := cfg.Check(local); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("underlay: IP: %w", errors.ErrUnsupported)
}
