//go:build !linux

package underlay

import (
	"errors"
	"fmt"
	"net/netip"
)

// UDP is an underlay of UDP sockets. It exists on Linux only; elsewhere [ListenUDP]
// makes none.
type UDP struct{ absent }

// ListenUDP returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func ListenUDP(local netip.AddrPort, cfg *UDPConfig) (*UDP, error) {
	if _, err := cfg.withDefaults(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("underlay: UDP: %w", errors.ErrUnsupported)
}

// Sockets returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func (u *UDP) Sockets(c TxConfig) (uint8, error) {
	return 0, fmt.Errorf("underlay: UDP: %w", errors.ErrUnsupported)
}

// Join returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func (u *UDP) Join(group netip.Addr) error {
	return fmt.Errorf("underlay: UDP: %w", errors.ErrUnsupported)
}

// Leave returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func (u *UDP) Leave(group netip.Addr) error {
	return fmt.Errorf("underlay: UDP: %w", errors.ErrUnsupported)
}

// Superframes does nothing.
func (u *UDP) Superframes(f func(payload []byte) bool) {}

// SetOffload turns segmentation by the kernel on or off.
func (u *UDP) SetOffload(on bool) {}
