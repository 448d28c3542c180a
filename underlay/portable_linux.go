package underlay

import "golang.org/x/sys/unix"

// dontWait makes ReadBatch and WriteBatch take several messages without waiting, which golang.org/x/net can do only on
// Linux.
const dontWait = unix.MSG_DONTWAIT

const (
	ctlTTL4, ctlTOS4, ctlInfo4 = unix.IP_TTL, unix.IP_TOS, unix.IP_PKTINFO
	ctlDst4, ctlIf4            = -1, -1
)

var (
	tell4 = []boolOption{{unix.IPPROTO_IP, unix.IP_RECVTTL}, {unix.IPPROTO_IP, unix.IP_RECVTOS}, {unix.IPPROTO_IP, unix.IP_PKTINFO}}

	dontFragment4 = dontFragment{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE, unix.IP_PMTUDISC_DONT}
	dontFragment6 = dontFragment{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE, unix.IPV6_PMTUDISC_DONT}

	shares = []boolOption{{unix.SOL_SOCKET, unix.SO_REUSEADDR}}
)
