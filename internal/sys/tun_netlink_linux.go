package sys

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// What has no ioctl is asked for by messages of rtnetlink, one at a time.
const (
	infoAt = unix.SizeofNlMsghdr           // struct ifinfomsg in a message
	attrAt = infoAt + unix.SizeofIfInfomsg // its attributes
)

// PacketInfo reports whether each packet of the device is preceded by a struct tun_pi,
// as it is unless the device is opened with IFF_NO_PI.
func (l *Link) PacketInfo() (bool, error) {
	link, err := l.describe()
	if err != nil {
		return false, err
	}
	pi := attribute(attribute(attribute(link, unix.IFLA_LINKINFO), unix.IFLA_INFO_DATA), unix.IFLA_TUN_PI)
	return len(pi) > 0 && pi[0] != 0, nil
}

// describe asks for the attributes of the device.
//
//	0            16            32
//	+------------+-------------+------------
//	| nlmsghdr   | ifinfomsg   | attributes
//	+------------+-------------+------------
func (l *Link) describe() (attributes []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follow(); err != nil {
		return nil, err
	}
	ifr, err := l.ioctl(unix.SIOCGIFINDEX, nil)
	if err != nil {
		return nil, err
	}
	err = Control(l.conn, func(fd int) error {
		attributes, err = exchange(fd, getLink(ifr.Uint32()))
		return err
	})
	return attributes, err
}

// TunTaken reports whether there is a device of that name, in the namespace of the calling
// thread, that goes when the program that made it ends: a TUN or TAP that is not persistent.
func TunTaken(name string) bool {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq(name)
	if err != nil || unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr) != nil {
		return false
	}
	link, err := exchange(fd, getLink(ifr.Uint32()))
	info := attribute(link, unix.IFLA_LINKINFO)
	persist := attribute(attribute(info, unix.IFLA_INFO_DATA), unix.IFLA_TUN_PERSIST)
	kind := unix.ByteSliceToString(attribute(info, unix.IFLA_INFO_KIND))
	return err == nil && kind == "tun" && len(persist) > 0 && persist[0] == 0
}

// getLink is the question for the device with an index.
func getLink(index uint32) []byte {
	m := make([]byte, attrAt)
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[4:], unix.RTM_GETLINK)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(m[infoAt+4:], index) // behind family and type, both 0
	return m
}

// exchange sends a message and returns the attributes of the answer. The kernel answers
// rtnetlink before sendto returns.
func exchange(fd int, m []byte) ([]byte, error) {
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	answer := make([]byte, 16<<10) // more than the description of a device takes
	n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT)
	if err != nil {
		return nil, err
	}
	answer = answer[:n]
	if n < unix.SizeofNlMsghdr+4 {
		return nil, unix.EPROTO
	}
	switch binary.NativeEndian.Uint16(answer[4:]) {
	case unix.NLMSG_ERROR:
		return nil, syscall.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])))
	case unix.RTM_NEWLINK:
		return answer[min(attrAt, n):], nil
	}
	return nil, unix.EPROTO
}

// attribute returns the value of an attribute, nil if it is not there.
func attribute(b []byte, typ uint16) []byte {
	for len(b) >= unix.SizeofRtAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return nil
		}
		if binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER) == typ {
			return b[unix.SizeofRtAttr:n]
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil
}
