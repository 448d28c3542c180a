package underlay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// A socket bound to a unicast address receives no groups, and each socket of a port gets a copy of every packet to a
// group that any socket has joined, unless IP_MULTICAST_ALL is 0 (Linux 6.18). So each group has one socket, bound to
// the group, which receives each packet once.

// groups are the multicast groups of an underlay. base.mu protects all fields but socks.
type groups struct {
	u     *base
	rx    *groupReader
	file  *os.File // epoll instance of all sockets
	raw   syscall.RawConn
	socks atomic.Pointer[[]*groupSock] // by number, nil if closed; replaced, never changed
	keeps bool                         // a goroutine calls check
	dev   string                       // interface of the groups, "" before the first Join and if there is none
	index int                          // of dev, 0 = the interface of the routes
	gone  uint64                       // packets that closed sockets dropped
}

// A groupSock is the socket of a multicast group.
type groupSock struct {
	*sock
	group   netip.Addr
	users   int // Joins without a Leave
	index   int // of the interface of the membership
	dropped datagrams.Drops
}

func newGroups(u *base) (*groups, error) {
	g := &groups{u: u}
	g.socks.Store(new([]*groupSock))
	var err error
	if g.file, g.raw, err = sys.NewEpoll("underlay: multicast groups"); err != nil {
		return nil, err
	}
	g.rx = newGroupReader(g)
	if u.cfg.MulticastDevice != "" {
		if _, err := u.indexOf(u.cfg.MulticastDevice); err != nil {
			g.file.Close()
			return nil, u.fieldError("MulticastDevice", fmt.Errorf("%q: %w", u.cfg.MulticastDevice, err))
		}
	}
	return g, nil
}

// each calls f for every socket.
func (g *groups) each(f func(s *groupSock)) {
	for _, s := range *g.socks.Load() {
		if s != nil {
			f(s)
		}
	}
}

// numbered returns the socket with a number, nil if it is closed.
func (g *groups) numbered(n int32) *groupSock {
	if all := *g.socks.Load(); int(n) < len(all) {
		return all[n]
	}
	return nil
}

// find returns the number of a group's socket, -1 if there is none.
func (g *groups) find(group netip.Addr) int {
	return slices.IndexFunc(*g.socks.Load(), func(s *groupSock) bool { return s != nil && s.group == group })
}

func (g *groups) join(group netip.Addr) error {
	if _, err := datagrams.Group("underlay", group, g.u.is4); err != nil {
		return err
	}
	group = group.Unmap()
	g.u.mu.Lock()
	defer g.u.mu.Unlock()
	if g.u.closed {
		return net.ErrClosed
	}
	if n := g.find(group); n >= 0 {
		g.numbered(int32(n)).users++
		return nil
	}
	return g.u.inNamespace(func() error {
		if err := g.locate(); err != nil {
			return err
		}
		return g.add(group)
	})
}

// add opens the socket of a group.
func (g *groups) add(group netip.Addr) error {
	s, err := g.open(group)
	if err != nil {
		return err
	}
	all := slices.Clone(*g.socks.Load())
	n := slices.Index(all, nil)
	if n < 0 {
		n, all = len(all), append(all, nil)
	}
	all[n] = s
	g.socks.Store(&all)
	if err := sys.EpollAdd(g.raw, s.raw, unix.EPOLLIN, int32(n)); err != nil {
		g.remove(n)
		return fmt.Errorf("underlay: multicast group %v: %w", group, err)
	}
	if !g.keeps {
		g.keeps = true
		g.u.every(g.check)
	}
	return nil
}

// remove closes a socket, which leaves the group.
func (g *groups) remove(n int) {
	all := slices.Clone(*g.socks.Load())
	s := all[n]
	s.drops(&s.dropped)
	g.gone += s.dropped.Total
	s.Close()
	all[n] = nil
	g.socks.Store(&all)
}

func (g *groups) leave(group netip.Addr) error {
	g.u.mu.Lock()
	defer g.u.mu.Unlock()
	if g.u.closed {
		return net.ErrClosed
	}
	n := g.find(group.Unmap())
	if n < 0 {
		return datagrams.NotJoined("underlay", group)
	}
	if s := g.numbered(int32(n)); s.users > 1 {
		s.users--
		return nil
	}
	g.remove(n)
	return nil
}

// close leaves all groups; base.mu is held.
func (g *groups) close() error {
	var errs []error
	g.each(func(s *groupSock) { errs = append(errs, s.Close()) })
	return errors.Join(append(errs, g.file.Close())...)
}

func (g *groups) addTo(st *datagrams.Counts) {
	g.rx.Rx.AddTo(st)
	st.RxOverflow += g.gone
	g.each(func(s *groupSock) {
		s.drops(&s.dropped)
		st.RxOverflow += s.dropped.Total
		st.Buffers(s.bufferSize(unix.SO_RCVBUF), 0)
	})
}

// open makes the socket of a group and joins it. It binds the socket itself, because package net binds to the
// wildcard address instead of a group.
func (g *groups) open(group netip.Addr) (*groupSock, error) {
	u := g.u
	family := unix.AF_INET
	if !u.is4 {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("underlay: multicast group %v: %w", group, os.NewSyscallError("socket", err))
	}
	file := os.NewFile(uintptr(fd), "multicast group") // a blocking socket, which the runtime's poller leaves alone
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("underlay: %w", err)
	}
	s := &groupSock{sock: &sock{Closer: file, raw: raw}, group: group, users: 1}
	for _, step := range []func(fd int) error{
		u.commonOptions, u.shared, u.rxOptions, u.onlyJoined,
		func(int) error {
			return u.callControl(u.udpNetwork(), netip.AddrPortFrom(group, u.local.Port()).String(), raw)
		},
		func(fd int) error { return g.bind(fd, group) },
		func(fd int) error { return g.member(fd, s) },
	} {
		if err := step(fd); err != nil {
			s.Close()
			return nil, err
		}
	}
	if u.runs {
		s.setGRO()
	}
	return s, nil
}

// shared lets the socket of a group share its port with sockets of other processes in the group, and with the
// underlay's socket on the wildcard address.
func (u *base) shared(fd int) error {
	opts := []option{{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1}, {unix.SOL_SOCKET, unix.SO_REUSEPORT, 1}}
	if !u.is4 {
		opts = append(opts, option{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1})
	}
	return setAll(fd, opts)
}

// onlyJoined keeps packets to groups that only other sockets have joined away from a socket.
func (u *base) onlyJoined(fd int) error {
	const ipv6MulticastAll = 29 // Linux 4.20
	if u.is4 {
		return setAll(fd, []option{{unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0}})
	}
	if err := setAll(fd, []option{{unix.IPPROTO_IPV6, ipv6MulticastAll, 0}}); err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
		return err
	}
	return nil
}

func (u *base) udpNetwork() string {
	if u.is4 {
		return "udp4"
	}
	return "udp6"
}

func (g *groups) bind(fd int, group netip.Addr) error {
	var sa unix.Sockaddr = &unix.SockaddrInet6{Addr: group.As16(), Port: int(g.u.local.Port()), ZoneId: uint32(g.index)}
	if g.u.is4 {
		sa = &unix.SockaddrInet4{Addr: group.As4(), Port: int(g.u.local.Port())}
	}
	if err := unix.Bind(fd, sa); err != nil {
		return fmt.Errorf("underlay: multicast group %v: %w", group, os.NewSyscallError("bind", err))
	}
	return nil
}

// member makes the socket of a group a member on the interface of the groups.
func (g *groups) member(fd int, s *groupSock) (err error) {
	if g.u.is4 {
		err = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: s.group.As4(), Ifindex: int32(g.index)})
	} else {
		err = unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: s.group.As16(), Interface: uint32(g.index)})
	}
	if err != nil {
		return g.u.fieldError("MulticastDevice", fmt.Errorf("joining %v on %q: %w", s.group, g.dev, err))
	}
	s.index = g.index
	return nil
}

// follow moves a membership to the current interface of the groups. It ends the old membership first, because the
// socket keeps that even if the interface is gone.
func (g *groups) follow(s *groupSock) error {
	if s.index == g.index {
		return nil
	}
	return sys.Control(s.raw, func(fd int) error {
		if g.u.is4 {
			_ = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_DROP_MEMBERSHIP, &unix.IPMreqn{Multiaddr: s.group.As4(), Ifindex: int32(s.index)})
		} else {
			_ = unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_LEAVE_GROUP, &unix.IPv6Mreq{Multiaddr: s.group.As16(), Interface: uint32(s.index)})
		}
		return g.member(fd, s)
	})
}
