package underlay

import "golang.org/x/sys/unix"

// What the other BSDs do not have.
const ctlTOS4 = unix.IP_RECVTOS

var (
	tellTOS4      = []boolOption{{unix.IPPROTO_IP, unix.IP_RECVTOS}}
	dontFragment4 = dontFragment{unix.IPPROTO_IP, unix.IP_DONTFRAG, 1, 0}
)
