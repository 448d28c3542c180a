//go:build !linux

package underlay

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// UDP is an underlay of UDP sockets. It exists on Linux only; elsewhere [ListenUDP]
// makes none.
type UDP struct{ local netip.AddrPort }

// ListenUDP returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func ListenUDP(local netip.AddrPort, cfg *UDPConfig) (*UDP, error) {
	if _, err := cfg.withDefaults(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("underlay: UDP: %w", errors.ErrUnsupported)
}

// Readers returns one Reader for each receive queue.
func (u *UDP) Readers() []frame.Reader { return nil }

// Sender returns worker w's Sender.
func (u *UDP) Sender(w int) frame.Sender { return nil }

// LocalAddr returns the address and port peers send to.
func (u *UDP) LocalAddr() netip.AddrPort { return u.local }

// Is4 reports whether this is an IPv4 underlay.
func (u *UDP) Is4() bool { return u.local.Addr().Is4() }

// MTU returns the IP MTU of the interface that has the local address.
func (u *UDP) MTU() int { return interfaceMTU(u.local.Addr(), "") }

// PathMTU has f called whenever a datagram turned out too long for its way.
func (u *UDP) PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte)) {}

// Sockets returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func (u *UDP) Sockets(c TxConfig) (uint8, error) {
	return 0, fmt.Errorf("underlay: UDP: %w", errors.ErrUnsupported)
}

// SetOffload turns segmentation by the kernel on or off.
func (u *UDP) SetOffload(on bool) {}

// Pause makes every Read return [frame.ErrPaused] until Resume.
func (u *UDP) Pause() {}

// Resume ends a Pause.
func (u *UDP) Resume() {}

// Close closes all sockets.
func (u *UDP) Close() error { return nil }

// Stats returns a snapshot of the counters.
func (u *UDP) Stats() Stats { return Stats{} }
