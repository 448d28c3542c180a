//go:build !linux

package underlay

import (
	"errors"
	"fmt"
	"net/netip"
)

// Packet is an underlay of packet sockets. It exists on Linux only; elsewhere
// [ListenPacket] makes none.
type Packet struct{ absent }

// ListenPacket returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func ListenPacket(local netip.AddrPort, cfg *PacketConfig) (*Packet, error) {
	local, err := packetLocal(local)
	if err == nil {
		_, err = cfg.withDefaults(local.Addr())
	}
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("underlay: Packet: %w", errors.ErrUnsupported)
}

// Sockets returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func (u *Packet) Sockets(c TxConfig) (uint8, error) {
	return 0, fmt.Errorf("underlay: Packet: %w", errors.ErrUnsupported)
}

// Join returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func (u *Packet) Join(group netip.Addr) error {
	return fmt.Errorf("underlay: Packet: %w", errors.ErrUnsupported)
}

// Leave returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func (u *Packet) Leave(group netip.Addr) error {
	return fmt.Errorf("underlay: Packet: %w", errors.ErrUnsupported)
}

// SetOffload turns segmentation by the kernel on or off.
func (u *Packet) SetOffload(on bool) {}
