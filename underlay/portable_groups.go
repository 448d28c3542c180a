package underlay

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// multicastDevice returns the interface for groups: the configured one, or the one with the local address.
func (u *Portable) multicastDevice() (*net.Interface, error) {
	name, local := u.cfg.MulticastDevice, u.local.Addr()
	if name == "" && local.IsUnspecified() {
		return nil, nil
	}
	ifi, err := interfaceWith(func(i *net.Interface) (bool, error) {
		if name != "" {
			return i.Name == name, nil
		}
		return isAt(i, local)
	})
	if err == nil && ifi == nil && name != "" {
		err = syscall.ENODEV
	}
	if err != nil && name != "" {
		return nil, fmt.Errorf("underlay: UDPConfig.MulticastDevice: %q: %w", name, err)
	}
	return ifi, nil
}

// Join makes the underlay a member of a multicast group of its address family, like [UDP.Join] on Linux. While it is in a
// group, an underlay with a unicast address also occupies the port on the wildcard address, where it receives only packets
// to its groups.
func (u *Portable) Join(group netip.Addr) error {
	return u.member(group, func(g [16]byte, joined map[[16]byte]int) error {
		if joined[g] == 0 {
			s, err := u.groupSocket()
			if err != nil {
				return err
			}
			if err := s.opts.JoinGroup(u.device, &net.UDPAddr{IP: g[:]}); err != nil {
				return fmt.Errorf("underlay: UDPConfig.MulticastDevice: %q: joining %v: %w", u.cfg.MulticastDevice, group, err)
			}
		}
		joined[g]++
		return nil
	})
}

// Leave undoes one Join.
func (u *Portable) Leave(group netip.Addr) error {
	return u.member(group, func(g [16]byte, joined map[[16]byte]int) error {
		switch joined[g] {
		case 0:
			return datagrams.NotJoined("underlay", group)
		case 1:
			delete(joined, g)
			s, err := u.groupSocket()
			if err == nil {
				_ = s.opts.LeaveGroup(u.device, &net.UDPAddr{IP: g[:]}) // fails if the interface is gone
			}
			return err
		}
		joined[g]--
		return nil
	})
}

// member changes the list of groups.
func (u *Portable) member(group netip.Addr, change func(g [16]byte, joined map[[16]byte]int) error) error {
	g, err := datagrams.Group("underlay", group, u.is4)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return net.ErrClosed
	}
	joined := maps.Clone(*u.joined.Load())
	if err = change(g, joined); err == nil {
		u.joined.Store(&joined)
	}
	r := u.readers[1]
	if s := r.sock.Load(); s != nil && len(*u.joined.Load()) == 0 { // free the port
		r.sock.Store(nil)
		s.Close()
		u.socks = slices.DeleteFunc(u.socks, func(x *portableSocket) bool { return x == s })
	}
	return err
}

// groupSocket returns the socket of the groups: the one on the local address if that is a wildcard, else one on the
// wildcard address. u.mu is held.
func (u *Portable) groupSocket() (*portableSocket, error) {
	if u.local.Addr().IsUnspecified() {
		return u.readers[0].sock.Load(), nil
	}
	if s := u.readers[1].sock.Load(); s != nil {
		return s, nil
	}
	all := netip.IPv6Unspecified()
	if u.is4 {
		all = netip.IPv4Unspecified()
	}
	shared := u.readers[0].sock.Load().raw // only while the other one opens: on Linux the two would conflict
	share := func(on int) (err error) {
		_ = shared.Control(func(fd uintptr) {
			for _, o := range shares {
				err = errors.Join(err, setsockopt(fd, o.level, o.name, on))
			}
		})
		return err
	}
	defer share(0)
	if err := share(1); err != nil {
		return nil, fmt.Errorf("underlay: sharing port %d: %w", u.local.Port(), err)
	}
	s, err := u.open(netip.AddrPortFrom(all, u.local.Port()), true, shares...)
	if err != nil {
		return nil, err
	}
	_ = s.SetReadDeadline(pausedUntil(u.paused.Load()))
	u.readers[1].sock.Store(s)
	u.begun.Broadcast()
	return s, nil
}
