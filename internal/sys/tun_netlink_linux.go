package sys

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// SetGSOMaxSize bounds the superframes that the kernel sends into the device, in
// bytes, headers included: "ip link set gso_max_size". It is the one setting that has
// no ioctl. It takes CAP_NET_ADMIN.
func (l *Link) SetGSOMaxSize(size uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follow(); err != nil {
		return err
	}
	ifr, err := l.ioctl(unix.SIOCGIFINDEX, nil)
	if err != nil {
		return err
	}
	msg := newLinkMessage(ifr.Uint32(), unix.IFLA_GSO_MAX_SIZE, size)
	return do(l.conn, func(fd int) error { return request(fd, msg) })
}

// newLinkMessage is an RTM_NEWLINK that sets one attribute of a device:
//
//	0            16            32        36     40
//	+------------+-------------+---------+------+
//	| nlmsghdr   | ifinfomsg   | rtattr  | u32  |
//	+------------+-------------+---------+------+
func newLinkMessage(index uint32, attr uint16, value uint32) []byte {
	const (
		info = unix.SizeofNlMsghdr
		rta  = info + unix.SizeofIfInfomsg
		size = rta + unix.SizeofRtAttr + 4
	)
	e := binary.NativeEndian
	m := make([]byte, size)
	e.PutUint32(m, size)
	e.PutUint16(m[4:], unix.RTM_NEWLINK)
	e.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	e.PutUint32(m[info+4:], index) // behind family and type, AF_UNSPEC and 0
	e.PutUint16(m[rta:], unix.SizeofRtAttr+4)
	e.PutUint16(m[rta+2:], attr)
	e.PutUint32(m[rta+4:], value)
	return m
}

// request sends a message that wants an acknowledgement and returns what that says.
// The kernel answers rtnetlink before sendto returns.
func request(fd int, msg []byte) error {
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 1024)
	n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return unix.EPROTO
	}
	if errno := -int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); errno != 0 {
		return syscall.Errno(errno)
	}
	return nil
}
