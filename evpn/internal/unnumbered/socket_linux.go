package unnumbered

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// raw is a raw socket that is bound to an interface.
type raw struct {
	*ipv6.PacketConn
	conf  *Config
	index int
	ask   int // a socket for ioctl
	*events
	heard sync.WaitGroup // events.run
}

var (
	errNone      = errors.New("there is no such interface")
	errDown      = errors.New("the interface is down")
	errFell      = errors.New("the interface was down")
	errOther     = errors.New("another interface has the name")
	errLinkLocal = errors.New("the interface has no link-local address")
)

var (
	allNodes   = netip.MustParseAddr("ff02::1")
	allRouters = netip.MustParseAddr("ff02::2")
)

func open(c *Config) (_ socket, err error) {
	s := &raw{conf: c, ask: -1}
	if err := s.inside(func() error { s.ask, err = datagrams(); return err }); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			unix.Close(s.ask)
		}
	}()
	if s.index, err = s.look(); err != nil {
		return nil, err
	}
	if err = s.inside(s.listen); err != nil {
		return nil, err
	}
	s.heard.Go(s.events.run)
	return s, nil
}

// inside calls f where sockets are to be opened.
func (s *raw) inside(f func() error) (err error) {
	s.conf.In(func() { err = f() })
	return err
}

// datagrams opens a socket that is good for questions.
func datagrams() (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	return fd, nil
}

// listen opens the socket. The kernel itself is in the group of all nodes.
func (s *raw) listen() (err error) {
	if s.events, err = newEvents(s.index); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.file.Close()
		}
	}()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, s.index) })
		return errors.Join(cerr, err)
	}}
	c, err := lc.ListenPacket(context.Background(), "ip6:ipv6-icmp", "::")
	if err != nil {
		return err
	}
	s.PacketConn = ipv6.NewPacketConn(c)
	var f ipv6.ICMPFilter
	f.SetAll(true)
	f.Accept(ipv6.ICMPTypeRouterAdvertisement)
	f.Accept(ipv6.ICMPTypeRouterSolicitation)
	group := net.IPAddr{IP: allRouters.AsSlice()}
	err = errors.Join(s.SetICMPFilter(&f), s.SetControlMessage(ipv6.FlagHopLimit, true), s.SetMulticastLoopback(false), s.SetMulticastHopLimit(hopLimit),
		s.JoinGroup(&net.Interface{Index: s.index}, &group))
	if err != nil {
		c.Close()
	}
	return err
}

// look returns the number of the interface with the name, if it is up.
func (s *raw) look() (int, error) {
	r, err := unix.NewIfreq(s.conf.Interface)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(s.ask, unix.SIOCGIFINDEX, r); err != nil {
		return 0, errNone
	}
	index := int(r.Uint32())
	if err := unix.IoctlIfreq(s.ask, unix.SIOCGIFFLAGS, r); err != nil {
		return 0, errNone
	}
	if f := r.Uint16(); f&unix.IFF_UP == 0 || f&unix.IFF_RUNNING == 0 {
		return 0, errDown
	}
	return index, nil
}

func (s *raw) state() error {
	index, err := s.look()
	switch {
	case err != nil:
		return err
	case index != s.index:
		return errOther
	case s.down.Load():
		return errFell
	}
	return nil
}

func (s *raw) changed() <-chan struct{} { return s.wake }

func (s *raw) send(counts time.Duration) error {
	var mac net.HardwareAddr
	var from netip.Addr
	err := s.inside(func() (err error) {
		if i, err := net.InterfaceByIndex(s.index); err == nil {
			mac = i.HardwareAddr
		}
		from, err = s.source()
		return err
	})
	if err != nil {
		return err
	}
	return s.write(advert(counts, mac), from, allNodes)
}

func (s *raw) solicit() error {
	var from netip.Addr
	if err := s.inside(func() (err error) { from, err = s.source(); return err }); err != nil {
		return err
	}
	return s.write(solicitation(), from, allRouters)
}

func (s *raw) write(b []byte, from, group netip.Addr) error {
	cm := ipv6.ControlMessage{HopLimit: hopLimit, IfIndex: s.index, Src: from.AsSlice()}
	_, err := s.WriteTo(b, &cm, &net.IPAddr{IP: group.AsSlice()})
	return err
}

// source returns the link-local address that we speak from.
func (s *raw) source() (netip.Addr, error) {
	fd, err := datagrams()
	if err != nil {
		return netip.Addr{}, err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet6{Addr: allNodes.As16(), ZoneId: uint32(s.index), Port: 9}); err != nil {
		return netip.Addr{}, errLinkLocal
	}
	a, err := unix.Getsockname(fd)
	if a, ok := a.(*unix.SockaddrInet6); ok {
		if from := netip.AddrFrom16(a.Addr); from.IsLinkLocalUnicast() {
			return from, nil
		}
	}
	return netip.Addr{}, errors.Join(errLinkLocal, err)
}

func (s *raw) own(a netip.Addr) (is bool) {
	a = a.WithZone("")
	s.conf.In(func() {
		i, err := net.InterfaceByIndex(s.index)
		if err != nil {
			return
		}
		all, _ := i.Addrs()
		is = slices.ContainsFunc(all, func(x net.Addr) bool {
			n, ok := x.(*net.IPNet)
			return ok && n.IP.Equal(a.AsSlice())
		})
	})
	return is
}

func (s *raw) read(b []byte) (n, hops int, from netip.Addr, err error) {
	n, cm, src, err := s.ReadFrom(b)
	if err != nil {
		return 0, 0, from, err
	}
	if cm != nil {
		hops = cm.HopLimit
	}
	if a, ok := src.(*net.IPAddr); ok {
		from, _ = netip.AddrFromSlice(a.IP)
	}
	return n, hops, from, nil
}

func (s *raw) Close() error {
	err := errors.Join(s.PacketConn.Close(), unix.Close(s.ask), s.file.Close())
	s.heard.Wait()
	return err
}
