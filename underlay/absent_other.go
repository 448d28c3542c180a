//go:build !linux

package underlay

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// absent is the underlays this system does not have.
type absent struct{ local netip.AddrPort }

// Readers returns one Reader for each receive queue.
func (u *absent) Readers() []frame.Reader { return nil }

// Sender returns worker w's Sender.
func (u *absent) Sender(w int) frame.Sender { return nil }

// LocalAddr returns the address and port peers send to.
func (u *absent) LocalAddr() netip.AddrPort { return u.local }

// Is4 reports whether this is an IPv4 underlay.
func (u *absent) Is4() bool { return u.local.Addr().Is4() }

// MTU returns the IP MTU of the interface that has the local address.
func (u *absent) MTU() int {
	m, _ := interfaceMTU(u.local.Addr(), "")
	return m
}

// PathMTU has f called whenever a datagram turned out too long for its way.
func (u *absent) PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte)) {}

// Pause makes every Read return [frame.ErrPaused] until Resume.
func (u *absent) Pause() {}

// Resume ends a Pause.
func (u *absent) Resume() {}

// SetLocal returns an error that errors.Is errors.ErrUnsupported: it needs Linux.
func (u *absent) SetLocal(addr netip.Addr) error {
	if _, err := datagrams.Another("underlay", u.local.Addr(), addr); err != nil {
		return err
	}
	return fmt.Errorf("underlay: SetLocal: %w", errors.ErrUnsupported)
}

// Close closes all sockets.
func (u *absent) Close() error { return nil }

// Stats returns a snapshot of the counters.
func (u *absent) Stats() Stats { return Stats{} }
