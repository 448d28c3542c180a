//go:build freebsd || netbsd || openbsd || dragonfly

package underlay

import "golang.org/x/sys/unix"

const (
	dontWait = 0

	ctlTTL4, ctlInfo4 = unix.IP_RECVTTL, -1
	ctlDst4, ctlIf4   = unix.IP_RECVDSTADDR, unix.IP_RECVIF
)

var (
	tell4 = append(tellTOS4, boolOption{unix.IPPROTO_IP, unix.IP_RECVTTL}, boolOption{unix.IPPROTO_IP, unix.IP_RECVDSTADDR}, boolOption{unix.IPPROTO_IP, unix.IP_RECVIF})

	dontFragment6 = dontFragment{unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1, 0}

	shares = []boolOption{{unix.SOL_SOCKET, unix.SO_REUSEADDR}, {unix.SOL_SOCKET, unix.SO_REUSEPORT}}
)
