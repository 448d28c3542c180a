//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
)

// errInUse is the error if a port is taken.
const errInUse = unix.EADDRINUSE

// Control messages of IPv6 and the options that enable them (RFC 3542).
const (
	ctlTTL6, ctlTOS6, ctlInfo6 = unix.IPV6_HOPLIMIT, unix.IPV6_TCLASS, unix.IPV6_PKTINFO
)

var tell6 = []boolOption{{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT}, {unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS}, {unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO}}

var portableReasons = []portableReason{
	{unix.EAGAIN, frame.PortFull}, {unix.ENOBUFS, frame.PortFull}, {unix.ENOMEM, frame.PortFull},
	{unix.EMSGSIZE, frame.TooBig},
	{unix.ECONNREFUSED, frame.Unreachable}, {unix.EHOSTUNREACH, frame.Unreachable}, {unix.EHOSTDOWN, frame.Unreachable},
	{unix.ENETUNREACH, frame.Unreachable}, {unix.ENETDOWN, frame.Unreachable}, {unix.EADDRNOTAVAIL, frame.Unreachable},
	{unix.EINVAL, frame.Unreachable}, {unix.ENODEV, frame.Unreachable}, {unix.ENXIO, frame.Unreachable},
}

func setsockopt(fd uintptr, level, name, value int) error {
	return unix.SetsockoptInt(int(fd), level, name, value)
}

// nextControl returns the first control message of b and the rest; data is nil at the end.
func nextControl(b []byte) (level, typ int, data, rest []byte) {
	h, data, rest, err := unix.ParseOneSocketControlMessage(b)
	if err != nil {
		return 0, 0, nil, nil
	}
	return int(h.Level), int(h.Type), data, rest
}
