package underlay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/vxswitch/vxswitch/frame"
)

// A portableSocket is a UDP socket with the functions to set its options.
type portableSocket struct {
	*net.UDPConn
	raw        syscall.RawConn
	opts       packetConn
	tos, ttl   func(int) error // set a field of the IP header
	groupTTL   func(int) error
	df         dontFragment
	recv, send int // buffer sizes that the system accepted

	mu  sync.Mutex // for senders
	has marks
}

// marks are the fields of the IP header that datagrams choose. Not all systems take them with a datagram, so they are set
// on the socket when they change.
type marks struct {
	tos, ttl, groupTTL uint8
	df                 bool
}

// packetConn has the common methods of ipv4.PacketConn and ipv6.PacketConn.
type packetConn interface {
	JoinGroup(on *net.Interface, group net.Addr) error
	LeaveGroup(on *net.Interface, group net.Addr) error
	SetMulticastInterface(*net.Interface) error
	SetMulticastLoopback(on bool) error
	ReadBatch(ms []ipv4.Message, flags int) (int, error)
	WriteBatch(ms []ipv4.Message, flags int) (int, error)
}

// A boolOption is a socket option to set to 1. A dontFragment is one with two values; name 0 means that there is none.
type (
	boolOption   struct{ level, name int }
	dontFragment struct{ level, name, on, off int }
)

// open opens a socket to receive or to send. The caller holds u.mu or is the only one with u.
func (u *Portable) open(local netip.AddrPort, receives bool, options ...boolOption) (*portableSocket, error) {
	e, err := frame.EndpointFrom(local)
	if err != nil {
		return nil, fmt.Errorf("underlay: local address: %w", err)
	}
	network, s, tells := "udp6", &portableSocket{df: dontFragment6}, tell6
	if u.is4 {
		network, s.df, tells = "udp4", dontFragment4, tell4
	}
	if receives {
		options = slices.Concat(options, tells)
	}
	var refused error // error of Control, without the text that package net adds
	lc := net.ListenConfig{Control: func(network, address string, c syscall.RawConn) error {
		_ = c.Control(func(fd uintptr) {
			for _, o := range options {
				_ = setsockopt(fd, o.level, o.name, 1) // without the option, the field is 0
			}
		})
		if u.cfg.Control != nil {
			if refused = u.cfg.Control(network, address, c); refused != nil {
				refused = fmt.Errorf("underlay: UDPConfig.Control: %w", refused)
			}
		}
		return refused
	}}
	pc, err := lc.ListenPacket(context.Background(), network, e.AddrPort().String())
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, fmt.Errorf("underlay: %w", err)
	}
	s.UDPConn = pc.(*net.UDPConn)
	if s.raw, err = s.SyscallConn(); err == nil && s.LocalAddr() == nil {
		err = errors.New("the system does not tell the address of a socket")
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("underlay: %w", err)
	}
	if u.is4 {
		c := ipv4.NewPacketConn(s.UDPConn)
		s.opts, s.tos, s.ttl, s.groupTTL = c, c.SetTOS, c.SetTTL, c.SetMulticastTTL
	} else {
		c := ipv6.NewPacketConn(s.UDPConn)
		s.opts, s.tos, s.ttl, s.groupTTL = c, c.SetTrafficClass, c.SetHopLimit, c.SetMulticastHopLimit
	}
	_ = s.opts.SetMulticastLoopback(false) // of a sender; on Windows of a receiver
	if receives {
		s.recv = granted(s.SetReadBuffer, u.cfg.RecvBuffer)
	} else {
		s.send = granted(s.SetWriteBuffer, u.cfg.SendBuffer)
		_ = s.SetReadBuffer(1) // nobody reads packets to this port
		s.setDF(false)
		if err := s.sendThrough(u.device); err != nil && u.cfg.MulticastDevice != "" {
			s.Close()
			return nil, fmt.Errorf("underlay: UDPConfig.MulticastDevice: %q: %w", u.cfg.MulticastDevice, err)
		}
	}
	u.socks = append(u.socks, s)
	return s, nil
}

// granted sets a buffer size, and half of it until the system accepts. It returns the size.
func granted(set func(int) error, size int) int {
	for ; size > 0 && set(size) != nil; size /= 2 {
	}
	return size
}

// sendThrough makes a socket send to groups through an interface, nil for the system's choice.
func (s *portableSocket) sendThrough(device *net.Interface) error {
	if device == nil {
		return nil
	}
	return s.opts.SetMulticastInterface(device)
}

func (s *portableSocket) port() uint16 { return s.LocalAddr().(*net.UDPAddr).AddrPort().Port() }

// mark makes the following datagrams leave with m, as far as the system can do that. s.mu is held.
func (s *portableSocket) mark(m marks) {
	if m == s.has {
		return
	}
	for _, x := range []struct {
		is, was uint8
		set     func(int) error
	}{{m.tos, s.has.tos, s.tos}, {m.ttl, s.has.ttl, s.ttl}, {m.groupTTL, s.has.groupTTL, s.groupTTL}} {
		if x.is != x.was {
			_ = x.set(int(x.is))
		}
	}
	if m.df != s.has.df {
		s.setDF(m.df)
	}
	s.has = m
}

func (s *portableSocket) setDF(on bool) {
	value := s.df.off
	if on {
		value = s.df.on
	}
	if s.df.name != 0 {
		_ = s.raw.Control(func(fd uintptr) { _ = setsockopt(fd, s.df.level, s.df.name, value) })
	}
}

// openSet opens the sockets of a set, one on a port of each slot of its range, unless they are open. A slot without a free
// port gets none. Errors about the range are of the struct config. u.mu is held.
func (u *Portable) openSet(set *portableSet, config string) error {
	if set.socks.Load() != nil {
		return nil
	}
	var socks []*portableSocket
	var last error
	before := len(u.socks)
	for i, n := 0, set.ports.Slots(u.cfg.SrcPortCount); i < n; i++ {
		slot := set.ports.Slot(i, n)
		size := slot.Len()
		first := rand.IntN(size)
		for k := range size {
			s, err := u.open(netip.AddrPortFrom(u.local.Addr(), slot.Lo+uint16((first+k)%size)), false)
			if err == nil {
				socks = append(socks, s)
				break
			}
			if last = err; !errors.Is(err, errInUse) {
				for _, s := range socks {
					s.Close()
				}
				u.socks = u.socks[:before]
				return err
			}
		}
	}
	if len(socks) == 0 {
		return fmt.Errorf("underlay: %s.SrcPorts: no port of %d-%d is free: %w", config, set.ports.Lo, set.ports.Hi, last)
	}
	set.socks.Store(&socks)
	return nil
}
