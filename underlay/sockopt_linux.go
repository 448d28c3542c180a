package underlay

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func (u *base) fieldError(field string, err error) error {
	return fmt.Errorf("underlay: %s.%s: %w", u.name, field, err)
}

// An option is one integer socket option.
type option struct{ level, name, value int }

func setAll(fd int, opts []option) error {
	for _, o := range opts {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return fmt.Errorf("underlay: setsockopt %d/%d = %d: %w", o.level, o.name, o.value, err)
		}
	}
	return nil
}

// commonOptions are those of every socket.
func (u *base) commonOptions(fd int) error {
	c := &u.cfg
	if c.Mark != 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(c.Mark)); err != nil {
			return u.fieldError("Mark", err)
		}
	}
	if c.Device != "" {
		if err := unix.BindToDevice(fd, c.Device); err != nil {
			return u.fieldError("Device", err)
		}
	}
	return nil
}

// rxOptions are those of a receive socket: the header fields we want to be told,
// and how much it may hold.
func (u *base) rxOptions(fd int) error {
	if err := setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, u.cfg.RecvBuffer); err != nil {
		return u.fieldError("RecvBuffer", err)
	}
	if u.is4 {
		return setAll(fd, []option{
			{unix.IPPROTO_IP, unix.IP_PKTINFO, 1},
			{unix.IPPROTO_IP, unix.IP_RECVTOS, 1},
			{unix.IPPROTO_IP, unix.IP_RECVTTL, 1},
		})
	}
	if err := setAll(fd, []option{
		{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1},
	}); err != nil {
		return err
	}
	if u.cfg.ZeroChecksum6RX {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_RX, 1); err != nil {
			return u.fieldError("ZeroChecksum6RX", err)
		}
	}
	return nil
}

// errorQueueSize bounds the kernel memory of a transmit socket's error queue, which
// is charged to its receive buffer and drained only when something is sent.
const errorQueueSize = 64 << 10

// txOptions are those of a transmit socket, with what it is to do about path MTUs
// (PMTUDISC).
//
// PMTUDISC_PROBE sets DF and lets a datagram be as long as the interface takes
// whatever the kernel believes the path MTU to be: that is the VTEP's to know. Over
// IPv6 it keeps the sender from fragmenting.
func (u *base) txOptions(fd, discover int) error {
	if err := setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, u.cfg.SendBuffer); err != nil {
		return u.fieldError("SendBuffer", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, errorQueueSize); err != nil {
		return fmt.Errorf("underlay: SO_RCVBUF: %w", err)
	}
	if err := refuseAll(fd); err != nil {
		return fmt.Errorf("underlay: SO_ATTACH_FILTER: %w", err)
	}
	if u.is4 {
		return setAll(fd, []option{
			{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, discover},
			{unix.IPPROTO_IP, unix.IP_RECVERR, 1},
			{unix.IPPROTO_IP, unix.IP_TTL, u.cfg.DefaultTTL},
			{unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 0},
		})
	}
	return setAll(fd, []option{
		{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, discover},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, u.cfg.DefaultTTL},
		{unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_LOOP, 0},
	})
}

// kindOptions are those of a transmit socket of one kind.
//
// Without DF it is PMTUDISC_OMIT over IPv4 and PMTUDISC_DONT over IPv6, because such a
// socket may get the ICMP error about what another on its port has sent: one with
// IP_PMTUDISC_DONT drops "fragmentation needed", and so does one with IPV6_PMTUDISC_OMIT
// "packet too big" (Linux 6.18).
func (u *UDP) kindOptions(fd int, k kind) error {
	discover, noSum := unix.IPV6_PMTUDISC_PROBE, option{unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_TX, 1}
	if u.is4 {
		discover, noSum = unix.IP_PMTUDISC_PROBE, option{unix.SOL_SOCKET, unix.SO_NO_CHECK, 1}
	}
	switch {
	case k&mayFragment == 0:
	case u.is4:
		discover = unix.IP_PMTUDISC_OMIT
	default:
		discover = unix.IPV6_PMTUDISC_DONT
	}
	if err := u.txOptions(fd, discover); err != nil {
		return err
	}
	_ = u.groups.sendFrom(fd) // if it fails the interface is gone, and keep will see to it
	if k&withSum != 0 {
		return nil
	}
	return setAll(fd, []option{noSum})
}

// refuseAll makes a socket take no packets: what strays to a transmit socket's
// port would otherwise fill a buffer nobody reads. ICMP errors pass no filter.
func refuseAll(fd int) error {
	return attach(fd, []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}})
}

// attach gives a socket a filter, in place of the one it has.
func attach(fd int, prog []unix.SockFilter) error {
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]})
}

// setBuffer asks for a buffer size beyond the system's limit, and for what the
// limit allows when it may not.
func setBuffer(fd, force, plain, size int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, size)
}

// bufferSize returns what the kernel granted, 0 after Close.
func (s *sock) bufferSize(which int) int {
	n, _ := s.option(unix.SOL_SOCKET, which)
	return n
}
