package underlay

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/vxswitch/vxswitch/frame"
)

const (
	dontWait = 0
	errInUse = windows.WSAEADDRINUSE

	// From ws2ipdef.h. An option and its control message have the same number, except for the TOS, 40 and 39.
	ctlTTL4, ctlTOS4, ctlInfo4 = 21, 39, windows.IP_PKTINFO
	ctlTTL6, ctlTOS6, ctlInfo6 = 21, 39, windows.IPV6_PKTINFO
	ctlDst4, ctlIf4            = -1, -1
	recvTOS, dontFrag          = 40, 14
)

var (
	tell4 = []boolOption{{levelIP, ctlTTL4}, {levelIP, recvTOS}, {levelIP, ctlInfo4}}
	tell6 = []boolOption{{levelIPv6, ctlTTL6}, {levelIPv6, recvTOS}, {levelIPv6, ctlInfo6}}

	dontFragment4 = dontFragment{levelIP, dontFrag, 1, 0}
	dontFragment6 = dontFragment{levelIPv6, dontFrag, 1, 0}

	shares = []boolOption{{windows.SOL_SOCKET, windows.SO_REUSEADDR}}
)

var portableReasons = []portableReason{
	{windows.WSAEWOULDBLOCK, frame.PortFull}, {windows.WSAENOBUFS, frame.PortFull},
	{windows.WSAEMSGSIZE, frame.TooBig},
	{windows.WSAECONNRESET, frame.Unreachable}, {windows.WSAENETRESET, frame.Unreachable},
	{windows.WSAEHOSTUNREACH, frame.Unreachable}, {windows.WSAENETUNREACH, frame.Unreachable}, {windows.WSAENETDOWN, frame.Unreachable},
	{windows.WSAEADDRNOTAVAIL, frame.Unreachable}, {windows.WSAEINVAL, frame.Unreachable},
}

func setsockopt(fd uintptr, level, name, value int) error {
	return windows.SetsockoptInt(windows.Handle(fd), level, name, value)
}

// nextControl returns the first control message of b and the rest; data is nil at the end. The data follows a WSACMSGHDR;
// both are padded to the size of a pointer.
func nextControl(b []byte) (level, typ int, data, rest []byte) {
	const word = int(unsafe.Sizeof(uintptr(0)))
	const head = word + 8
	if len(b) < head {
		return 0, 0, nil, nil
	}
	n := int(binary.NativeEndian.Uint32(b)) // the lower half of a SIZE_T: Windows is little endian
	if n < head || n > len(b) {
		return 0, 0, nil, nil
	}
	level, typ = int(binary.NativeEndian.Uint32(b[word:])), int(binary.NativeEndian.Uint32(b[word+4:]))
	return level, typ, b[head:n], b[min((n+word-1)&^(word-1), len(b)):]
}
