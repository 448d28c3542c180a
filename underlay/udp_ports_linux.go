package underlay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// bindTx opens sockets of one kind on the chosen ports, or the first time on one port out of each slot of the range. A
// slot without a free port gets none; an error means that no slot has one.
func (u *UDP) bindTx(p *txPorts, k kind, x *txSocks) error {
	if ports := p.ports.Load(); ports != nil {
		for _, port := range *ports {
			s, err := u.openPort(port, k, true)
			if err != nil {
				return err
			}
			x.socks = append(x.socks, s)
		}
		return nil
	}
	var ports []uint16
	for i, n := 0, p.r.Slots(u.cfg.SrcPortCount); i < n; i++ {
		s, err := u.openIn(p.r.Slot(i, n), k)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return err
		}
		x.socks = append(x.socks, s)
		ports = append(ports, s.port)
	}
	if len(ports) == 0 {
		return u.fieldError("SrcPorts", fmt.Errorf("no port of %d-%d is free: %w", p.r.Lo, p.r.Hi, syscall.EADDRINUSE))
	}
	p.ports.Store(&ports)
	return nil
}

// openIn binds a socket to a random free port of r.
func (u *UDP) openIn(r datagrams.Ports, k kind) (*txSock, error) {
	size := r.Len()
	first := rand.IntN(size)
	for i := range size {
		s, err := u.openPort(r.Lo+uint16((first+i)%size), k, false)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Only now, so that no other underlay takes the port; the other kinds join later.
		if err := s.reusePort(true); err != nil {
			s.Close()
			return nil, err
		}
		return s, nil
	}
	return nil, fmt.Errorf("underlay: ports %d-%d: %w", r.Lo, r.Hi, syscall.EADDRINUSE)
}

// openPort binds a socket to a port, which may already have a socket of this underlay.
func (u *UDP) openPort(port uint16, k kind, join bool) (*txSock, error) {
	t, err := u.openWatched(u.udpNetwork(), port, func(fd int) error {
		if join {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
				return fmt.Errorf("underlay: SO_REUSEPORT: %w", err)
			}
		}
		return u.kindOptions(fd, k)
	})
	if err != nil {
		return nil, err
	}
	t.port = port
	return t, nil
}
