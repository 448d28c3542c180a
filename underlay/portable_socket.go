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

// A portableSocket is a UDP socket and what can be set on it.
type portableSocket struct {
	*net.UDPConn
	raw        syscall.RawConn
	opts       packetConn
	tos, ttl   func(int) error // set a field of the IP header
	groupTTL   func(int) error
	df         dontFragment
	recv, send int // sizes of the buffers that the system took

	mu  sync.Mutex // of who sends
	has marks
}

// marks is what senders choose in the IP header. Not all systems take it with a datagram, so it is set on the
// socket when it changes.
type marks struct {
	tos, ttl, groupTTL uint8
	df                 bool
}

// packetConn is what an ipv4.PacketConn and an ipv6.PacketConn have in common.
type packetConn interface {
	JoinGroup(on *net.Interface, group net.Addr) error
	LeaveGroup(on *net.Interface, group net.Addr) error
	SetMulticastInterface(*net.Interface) error
	SetMulticastLoopback(on bool) error
	ReadBatch(ms []ipv4.Message, flags int) (int, error)
	WriteBatch(ms []ipv4.Message, flags int) (int, error)
}

// A boolOption is a socket option that is set to 1; a dontFragment is one of two values, name 0 where there is none.
type (
	boolOption   struct{ level, name int }
	dontFragment struct{ level, name, on, off int }
)

// open opens a socket, which is one to receive from or one to send through. The caller holds u.mu, or nobody else has u.
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
	var refused error // by Control, told without the words the net package would add
	lc := net.ListenConfig{Control: func(network, address string, c syscall.RawConn) error {
		_ = c.Control(func(fd uintptr) {
			for _, o := range options {
				_ = setsockopt(fd, o.level, o.name, 1) // what the system does not tell is 0
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
	_ = s.opts.SetMulticastLoopback(false) // of a sender, on Windows of a receiver
	if receives {
		s.recv = granted(s.SetReadBuffer, u.cfg.RecvBuffer)
	} else {
		s.send = granted(s.SetWriteBuffer, u.cfg.SendBuffer)
		_ = s.SetReadBuffer(1) // nobody reads what strays here
		s.setDF(false)
		if err := s.sendThrough(u.device); err != nil && u.cfg.MulticastDevice != "" {
			s.Close()
			return nil, fmt.Errorf("underlay: UDPConfig.MulticastDevice: %q: %w", u.cfg.MulticastDevice, err)
		}
	}
	u.socks = append(u.socks, s)
	return s, nil
}

// granted asks for a buffer, and for half as much until the system agrees. It returns what that was.
func granted(set func(int) error, size int) int {
	for ; size > 0 && set(size) != nil; size /= 2 {
	}
	return size
}

// sendThrough has groups sent to through an interface, nil for the one of the system's choice.
func (s *portableSocket) sendThrough(device *net.Interface) error {
	if device == nil {
		return nil
	}
	return s.opts.SetMulticastInterface(device)
}

func (s *portableSocket) port() uint16 { return s.LocalAddr().(*net.UDPAddr).AddrPort().Port() }

// mark has what is sent from now on leave with m, as far as the system can do that. s.mu is held.
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

// openSet opens the sockets of a set, one on a port of each slot of its range, if there are none. A slot none of
// whose ports can be had gives none. u.mu is held.
func (u *Portable) openSet(set *portableSet) error {
	if set.socks.Load() != nil {
		return nil
	}
	var socks []*portableSocket
	var last error
	for i, n := 0, set.ports.Slots(); i < n; i++ {
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
				return err
			}
		}
	}
	if len(socks) == 0 {
		return fmt.Errorf("underlay: UDPConfig.SrcPorts: no port of %d-%d is free: %w", set.ports.Lo, set.ports.Hi, last)
	}
	set.socks.Store(&socks)
	return nil
}
