package underlay

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// A membership and the interface for sending to groups (IP_MULTICAST_IF) refer to an interface's index. Both are lost
// when the interface is deleted.

// indexOf returns the index of an interface in the sockets' network namespace.
func (u *base) indexOf(name string) (int, error) {
	return sys.InterfaceIndex(u.readers[0].sock.raw, name)
}

// locate finds the interface for groups, unless it is known, and makes all transmit sockets send to groups through it.
// It runs in the sockets' namespace; base.mu is held.
func (g *groups) locate() error {
	if g.index != 0 {
		return nil
	}
	dev, index, err := g.device()
	if err != nil || index == 0 {
		return err
	}
	return g.moveTo(dev, index)
}

// device returns the interface for groups, none for a wildcard address.
func (g *groups) device() (dev string, index int, err error) {
	u := g.u
	dev, field := u.cfg.MulticastDevice, "MulticastDevice"
	if dev == "" {
		dev, field = u.cfg.Device, "Device"
	}
	switch {
	case dev != "":
		if index, err = u.indexOf(dev); err != nil {
			return "", 0, u.fieldError(field, fmt.Errorf("%q: %w", dev, err))
		}
		return dev, index, nil
	case u.local.Addr().IsUnspecified():
		return "", 0, nil
	}
	ifi, err := interfaceOf(u.local.Addr())
	if err != nil {
		return "", 0, u.fieldError("MulticastDevice", err)
	}
	if ifi == nil {
		return "", 0, u.fieldError("MulticastDevice", fmt.Errorf("no interface has %v, one must be named: %w", u.local.Addr(), unix.ENODEV))
	}
	return ifi.Name, ifi.Index, nil
}

// moveTo changes the interface for groups.
func (g *groups) moveTo(dev string, index int) error {
	old := g.index
	g.dev, g.index = dev, index
	var errs []error
	for _, p := range g.u.ranges {
		p.all(func(s *txSock) {
			errs = append(errs, sys.Control(s.raw, g.sendFrom))
		})
	}
	g.each(func(s *groupSock) { errs = append(errs, g.follow(s)) })
	err := errors.Join(errs...)
	if err != nil {
		g.index = old // try again
	}
	return err
}

// sendFrom makes a transmit socket send to groups through their interface, if there is one.
func (g *groups) sendFrom(fd int) (err error) {
	switch {
	case g == nil || g.index == 0:
		return nil
	case g.u.is4:
		err = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(g.index)})
	default:
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, g.index)
	}
	if err != nil {
		return g.u.fieldError("MulticastDevice", fmt.Errorf("sending through %q: %w", g.dev, err))
	}
	return nil
}

// check moves to another interface if the one for groups is gone or its name belongs to another one.
func (g *groups) check() {
	u := g.u
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || g.dev == "" {
		return
	}
	if index, err := u.indexOf(g.dev); err == nil && index == g.index {
		return
	}
	_ = u.inNamespace(func() error {
		dev, index, err := g.device()
		if err != nil {
			return err // there is no interface now
		}
		if index == g.index {
			g.dev = dev // it was renamed
			return nil
		}
		return g.moveTo(dev, index)
	})
}
