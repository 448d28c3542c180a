package underlay

import "golang.org/x/sys/unix"

const (
	dontWait = 0

	ctlTTL4, ctlTOS4, ctlInfo4 = unix.IP_RECVTTL, unix.IP_RECVTOS, unix.IP_PKTINFO
	ctlDst4, ctlIf4            = -1, -1
)

var (
	tell4 = []boolOption{{unix.IPPROTO_IP, unix.IP_RECVTTL}, {unix.IPPROTO_IP, unix.IP_RECVTOS}, {unix.IPPROTO_IP, unix.IP_RECVPKTINFO}}

	dontFragment4 = dontFragment{unix.IPPROTO_IP, unix.IP_DONTFRAG, 1, 0}
	dontFragment6 = dontFragment{unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1, 0}

	shares = []boolOption{{unix.SOL_SOCKET, unix.SO_REUSEADDR}, {unix.SOL_SOCKET, unix.SO_REUSEPORT}}
)
