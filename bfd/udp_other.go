//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package bfd

import (
	"errors"
	"net"
)

// A UDP is the Path through the host's UDP sockets. This system has none: golang.org/x/net does not tell the TTL of received
// packets there.
type UDP struct{ cfg UDPConfig }

// ListenUDP returns [errors.ErrUnsupported].
func ListenUDP(_ *Speaker, c *UDPConfig) (*UDP, error) {
	return nil, udpError("UDP sockets", errors.ErrUnsupported)
}

// Close does nothing.
func (u *UDP) Close() error { return nil }

// Send implements [Path].
func (u *UDP) Send(*Packet) error { return net.ErrClosed }
