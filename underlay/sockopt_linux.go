package underlay

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

func (u *base) fieldError(field string, err error) error {
	return fmt.Errorf("underlay: %s.%s: %w", u.name, field, err)
}

// An option is an integer socket option.
type option struct{ level, name, value int }

func setAll(fd int, opts []option) error {
	for _, o := range opts {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return fmt.Errorf("underlay: setsockopt %d/%d = %d: %w", o.level, o.name, o.value, err)
		}
	}
	return nil
}

// commonOptions are the options of every socket.
func (u *base) commonOptions(fd int) error {
	c := &u.cfg
	if c.Mark != 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(c.Mark)); err != nil {
			return u.fieldError("Mark", fmt.Errorf("%d: %w", c.Mark, err))
		}
	}
	if c.Device != "" {
		if err := unix.BindToDevice(fd, c.Device); err != nil {
			return u.fieldError("Device", fmt.Errorf("%q: %w", c.Device, err))
		}
	}
	return nil
}

// rxOptions are the options of a receive socket: the header fields to receive, and the buffer size.
func (u *base) rxOptions(fd int) error {
	if err := sys.SetBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, u.cfg.RecvBuffer); err != nil {
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

// errorQueueSize bounds the kernel memory of a transmit socket's error queue. The kernel charges it to the receive
// buffer, and it is drained only after a send.
const errorQueueSize = 64 << 10

// txOptions are the options of a transmit socket, with what it does about path MTUs (PMTUDISC).
//
// PMTUDISC_PROBE sets DF and lets a datagram be as long as the interface allows, whatever path MTU the kernel has
// noted: the VTEP keeps path MTUs. Over IPv6 it prevents fragmentation by the sender.
func (u *base) txOptions(fd, discover int) error {
	if err := sys.SetBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, u.cfg.SendBuffer); err != nil {
		return u.fieldError("SendBuffer", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, errorQueueSize); err != nil {
		return fmt.Errorf("underlay: SO_RCVBUF: %w", err)
	}
	if err := sys.RefuseAll(fd); err != nil { // packets to the port would fill a buffer that nobody reads
		return fmt.Errorf("underlay: %w", err)
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

// kindOptions are the options of one kind of transmit socket.
//
// Without DF it is PMTUDISC_OMIT over IPv4 and PMTUDISC_DONT over IPv6, because such a socket may receive the ICMP error
// about a datagram of another socket on its port: a socket with IP_PMTUDISC_DONT drops "fragmentation needed", and one
// with IPV6_PMTUDISC_OMIT drops "packet too big" (Linux 6.18).
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
	_ = u.groups.sendFrom(fd) // an error means that the interface is gone; the goroutine that keeps groups handles it
	if k&withSum != 0 {
		return nil
	}
	return setAll(fd, []option{noSum})
}

// bufferSize returns the size that the kernel granted, 0 after Close.
func (s *sock) bufferSize(which int) int {
	n, _ := s.option(unix.SOL_SOCKET, which)
	return n
}
